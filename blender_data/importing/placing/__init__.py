"""Imports of files that place models of other files, and the arrangement of several models side by side."""
