"""Pieces of file formats: bytes, records, quantised numbers, compression, pictures, XML and FBX."""
