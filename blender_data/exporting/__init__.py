"""Blender -> Scene: the user's scene is the same before and after."""
