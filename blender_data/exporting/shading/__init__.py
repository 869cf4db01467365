"""Shader nodes and images of materials to neutral shading."""
