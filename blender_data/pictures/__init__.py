"""Small pictures of objects, and collections as assets."""
