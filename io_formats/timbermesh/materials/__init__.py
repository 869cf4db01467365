"""Names of materials, from the game's files."""
