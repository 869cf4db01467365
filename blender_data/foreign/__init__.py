"""Blender's own importers and exporters: preparation, cleanup, and what they lose."""
