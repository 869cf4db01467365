"""BVH files as the Second Life viewer's uploader reads them."""
