"""Prims and sculpts: shapes that the viewer builds from a few numbers or from a picture."""
