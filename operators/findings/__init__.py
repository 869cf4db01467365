"""Checks, and what the user can do with their findings."""
