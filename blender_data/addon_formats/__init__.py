"""Formats of Blender's own importers and exporters: preparation of the data, and what a format does not hold."""
