"""Keys of joints: their codes, curves and reduction, and keys of a file that are preserved after an edit."""
