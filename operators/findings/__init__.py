"""Findings of checks: the list, the selection of elements, fixes."""
