"""What the upload window takes: Collada files of each level of detail and physics, with textures."""
