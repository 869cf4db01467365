"""Keys of joints: codes, curves, reduction, and what an edit leaves of the keys of a file."""
