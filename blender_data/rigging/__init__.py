"""Bones, weights and binding of meshes to armatures."""
