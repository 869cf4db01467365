"""The faces of a prim from the numbers of its shape, as the viewer shows it at its highest level of detail.

It follows docs/formats/second_life_prims.md in double precision, with exact parameters, and is within 6e-5 of the
viewer, which computes in single precision.
"""

from __future__ import annotations

from .caps import caps_of
from .limits import parameters_of
from .path import path_of
from .profile import profile_of
from .shape import PrimShape, ShapeFace
from .sides import cut_columns, inner_columns, outer_columns, side_of


def face_count(shape: PrimShape) -> int:
    """Return the number of faces of a prim, without building them."""
    parameters = parameters_of(shape)
    profile, path = profile_of(parameters), path_of(parameters)
    return profile.side_count + profile.is_hollow + 2 * (path.is_open + profile.is_open)


def faces_of(shape: PrimShape) -> list[ShapeFace]:
    """Build the faces of a prim, in the order of their numbers.

    Any integers are accepted, since they are clamped to the viewer's limits. Flexible prims are at rest. There is
    always a face, with less than 20,000 points in all. Edges between faces are sharp.
    """
    parameters = parameters_of(shape)
    profile, path = profile_of(parameters), path_of(parameters)
    placed = path.place(profile.points[:, 0], profile.points[:, 1])
    sides = [("outer", columns) for columns in outer_columns(profile)]
    if profile.is_hollow:
        sides.append(("inner", inner_columns(profile)))
    cuts = [("cut", columns) for columns in cut_columns(profile)] if profile.is_open else []
    top, bottom = caps_of(parameters, profile, path, placed) if path.is_open else (None, None)
    faces = [
        top,
        *(side_of(role, columns, parameters, profile, path, placed) for role, columns in sides),
        bottom,
        *(side_of(role, columns, parameters, profile, path, placed) for role, columns in cuts),
    ]
    return [face for face in faces if face is not None]
