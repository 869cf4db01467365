"""The native mesh asset, as stored in region archives and caches."""
