"""Files that exports add to a project: images, materials, their ``.meta`` files, and where they go."""
