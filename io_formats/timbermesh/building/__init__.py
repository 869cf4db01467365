"""New buildings of Timberborn: the files of a mod that make a model a building of the game."""
