"""The benchmark: one measured model, Blender's own operators as peers, and the rows of each format."""
