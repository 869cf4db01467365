"""Files for the viewer's upload window: Collada files of each level of detail and physics, with textures."""
