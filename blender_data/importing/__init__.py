"""Scene -> Blender: an import creates everything, or nothing if it fails."""
