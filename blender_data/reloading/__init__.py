"""Replacement of imported data by the current content of its file. Objects keep the settings made by the user."""
