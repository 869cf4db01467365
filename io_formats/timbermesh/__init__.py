"""Timbermesh (``.timbermesh``, older ``.meshy``): the model format of the game Timberborn.

A protocol-buffers message in a zlib stream: a flat list of nodes with transforms, triangle meshes (one for each
material), vertex animations and node animations. Little-endian; left-handed, Y up; one unit is one game tile;
quaternions (x, y, z, w); texture v up. Layout: ``docs/formats/timbermesh.md``.
"""
