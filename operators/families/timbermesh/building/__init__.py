"""Planning of new buildings, which is imported on first use."""
