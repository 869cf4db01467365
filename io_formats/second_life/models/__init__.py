"""What the files of models share: LLSD, blocks of levels, skins and physics, faces, space, costs."""
