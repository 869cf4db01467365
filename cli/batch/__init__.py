"""Conversions of whole libraries: found, planned, done by many processes, kept in a journal, reported."""
