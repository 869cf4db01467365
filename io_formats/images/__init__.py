"""Image files: neutral readers and writers of containers that hold pixels."""
