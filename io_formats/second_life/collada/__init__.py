"""Collada files (.dae) of Second Life creators, which are only read; ``upload_set`` writes those of an upload."""
