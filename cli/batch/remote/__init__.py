"""Parts of a batch on other machines: a dask cluster, a job for render farms."""
