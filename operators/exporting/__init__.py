"""Operators of exports."""
