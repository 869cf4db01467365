"""Materials of a scene -> shader nodes and images."""
