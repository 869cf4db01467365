"""The sources of a batch: files below folders, in lists and inside archives."""
