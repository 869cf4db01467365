"""Sources of a batch: files in folders, lists and archives."""
