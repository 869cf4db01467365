"""Skeletons of a scene to armatures."""
