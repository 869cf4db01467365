"""Mesh assets (``.llmesh``), models as all formats store them, and the rules for them."""
