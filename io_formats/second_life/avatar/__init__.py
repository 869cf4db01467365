"""The avatar: joints, skeletons, positions, body shapes, rigs of other programs, the classic body."""
