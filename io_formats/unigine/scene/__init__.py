"""UNIGINE nodes and worlds: files that place meshes."""
