"""Blender's own importers and exporters: preparation, cleanup, and reports of data that is lost."""
