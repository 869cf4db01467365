"""The native mesh asset, as region archives and caches hold it."""
