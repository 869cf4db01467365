"""Change of the axes of an armature's bones at rest, and of all data that depend on them."""
