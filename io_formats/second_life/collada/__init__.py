"""Reader of Collada files (.dae) by Second Life creators. ``upload_set`` writes the Collada files of an upload."""
