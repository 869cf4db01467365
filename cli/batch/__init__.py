"""Conversion of whole libraries: search, plan, worker processes, journal, report."""
