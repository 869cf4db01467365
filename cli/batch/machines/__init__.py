"""The same work on many machines: parts of the plan, a dask cluster, a job for render farms."""
