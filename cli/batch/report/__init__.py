"""The report of a batch: HTML pages with a small picture, the counts and the warnings of each model."""
