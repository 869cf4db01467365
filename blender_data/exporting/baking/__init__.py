"""Node-built materials -> temporary plain materials with pictures, which the readers of all formats understand."""
