"""BVH files of the avatar, which viewers upload as animations."""
