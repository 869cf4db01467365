"""Batches on several machines: dask clusters."""
