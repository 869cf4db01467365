"""Blender -> placements of files that place models, new ones or changes of imported ones."""
