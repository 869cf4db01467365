"""Registered property groups of data blocks."""
