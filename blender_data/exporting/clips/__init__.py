"""Actions to clips of a scene."""
