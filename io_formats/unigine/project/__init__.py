"""Projects of UNIGINE: references and GUIDs, materials and textures, and files that exports add."""
