"""Exports of files that place models: new files, and changes of imported ones."""
