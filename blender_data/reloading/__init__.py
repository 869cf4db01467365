"""Replacement of imported data by the current content of its file; objects keep what the user set on them."""
