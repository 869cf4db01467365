"""MeshSerializer2, a mesh format of the Unity community, and its variants."""
