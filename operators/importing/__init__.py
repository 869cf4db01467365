"""Operators of imports."""
