"""Checks, and operators for their findings."""
