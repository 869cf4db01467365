"""Files that an export adds to a project (images, materials, ``.meta`` files), and the folder that they go to."""
