"""What a batch works on: files below folders, in lists and inside archives."""
