"""Small preview pictures of objects, and collections as assets."""
