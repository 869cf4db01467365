"""Files that place models of other files, and several models side by side."""
