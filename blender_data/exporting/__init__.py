"""Blender -> Scene: an export reads the user's scene and leaves it unchanged."""
