"""Data of meshes that import and export share: surfaces, weights, normals, values of the file."""
