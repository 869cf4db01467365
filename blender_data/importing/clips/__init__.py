"""Clips of a scene to actions."""
