"""Meshes, shapes, armatures and materials of Blender -> their equivalents in a scene."""
