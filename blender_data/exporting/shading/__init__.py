"""Shader nodes and images of materials -> neutral shading."""
