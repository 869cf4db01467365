"""Clips of a scene -> actions."""
