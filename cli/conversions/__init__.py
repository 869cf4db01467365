"""One file or a few become others: what becomes what, reading, Blender in between, writing."""
