"""Blender's own importers and exporters: preparation, cleanup, and reports of the data that they lose."""
