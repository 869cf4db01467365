"""Meshes, shapes, armatures and materials of Blender to their equivalents in a scene."""
