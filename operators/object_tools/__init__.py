"""Tools for the data of selected objects."""
