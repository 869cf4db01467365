"""Batches on several machines: dask clusters and jobs for render farms."""
