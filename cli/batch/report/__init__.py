"""What a batch shows at its end: a small picture of every model, and pages to look through and search."""
