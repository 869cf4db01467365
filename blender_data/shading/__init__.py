"""Shader nodes for neutral shading."""
