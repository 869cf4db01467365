"""Keys of joints: codes, curves, reduction, and keys of a file that remain after an edit."""
