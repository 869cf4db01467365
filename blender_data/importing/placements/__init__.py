"""Placements -> collections and instances of the models that a file places."""
