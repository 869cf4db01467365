"""MeshSerializer2 of the Unity community, and its relatives."""
