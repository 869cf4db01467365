"""UNIGINE ``.mesh``, ``.anim`` and ``.skeleton``, from the 2003 demo engine to SDK 2.21.

The package reads three formats, which share their bones, transforms and frames: ``mesh/`` (mr02, ms10 to ms15, sk10),
``animation/`` (an10 to an13) and ``skeleton/`` (sn10). Everything is little-endian and unpadded; space is right-handed,
Z up, in metres; quaternions are (x, y, z, w); v counts from the top.
"""
