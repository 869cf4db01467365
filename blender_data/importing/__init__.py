"""Scene -> Blender: everything or nothing."""
