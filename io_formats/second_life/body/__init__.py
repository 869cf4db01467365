"""The classic avatar's meshes, which users have with their viewer."""
