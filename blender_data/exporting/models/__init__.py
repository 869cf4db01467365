"""Models with levels of detail, physics shapes and a binding."""
