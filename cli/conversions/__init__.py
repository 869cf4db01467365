"""One conversion: plan, reading, Blender's importers and exporters, writing."""
