"""Skeletons of a scene -> armatures."""
