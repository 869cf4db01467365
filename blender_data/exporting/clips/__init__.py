"""Actions of Blender -> clips of a scene."""
