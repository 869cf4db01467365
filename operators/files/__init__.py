"""Import, export, reload, re-export and checks of files."""
