"""File formats without Blender: bytes, documents and scenes."""
