"""Data of meshes that both import and export use: surfaces, weights, normals, values of the file."""
