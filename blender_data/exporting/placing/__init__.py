"""Files that place models: new placements, and changes of imported ones."""
