"""UNIGINE meshes: ``.mesh`` (mr02, ms10 to ms15) and ``.mesh_skinned`` (sk10)."""
