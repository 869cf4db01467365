"""Models of an upload: levels of detail, faces and unit cube."""
