"""Materials of a scene to shader nodes and images."""
