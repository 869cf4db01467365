"""The avatar: its skeleton, its space, and rigs bound to it."""
