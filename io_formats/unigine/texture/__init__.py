"""Textures as the editor of UNIGINE stores them for its engine (.texture)."""
