"""Shapes that the user keeps: named presets and the copied shape, in one file of Blender's configuration.

The file is JSON: the values of sliders by their ids, by name. It is read again at each use, so that several running
Blenders share it.
"""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path

import bpy

from ....io_formats.core.errors import MeshferryError
from ....io_formats.disk.atomic_write import replace_file
from ....io_formats.disk.special_files import read_bytes
from ....io_formats.second_life.avatar import sliders

FILE_NAME = "meshferry_shapes.json"
COPIED = ""
"""Name of the shape that the user copied, which is not a preset."""

Values = dict[int, float]


def presets_file() -> Path:
    """Return the path of the file; its folder exists.

    Raises
    ------
    MeshferryError
        The folder cannot be made.
    """
    folder = bpy.utils.user_resource("CONFIG", create=True)
    if not folder:
        raise MeshferryError("The folder of Blender's configuration cannot be made")
    return Path(folder) / FILE_NAME


def kept_shapes() -> dict[str, Values]:
    """Return the values of all kept shapes by name, in the order in which they were added.

    Raises
    ------
    MeshferryError
        The file cannot be read.
    """
    path = presets_file()
    if not os.path.exists(path):  # False, too, if the folder cannot be read
        return {}
    data = read_bytes(path)
    try:
        found = json.loads(data)
        return {
            str(name): {
                int(number): float(value)
                for number, value in values.items()
                if int(number) in sliders.sliders() and math.isfinite(value)
            }
            for name, values in found.items()
        }
    except (ValueError, TypeError, AttributeError, RecursionError) as problem:
        raise MeshferryError("The file does not hold shapes; move it away to start anew", file=path) from problem


def keep_shape(name: str, values: Mapping[int, float] | None) -> None:
    """Write a shape into the file under a name, in place of the one of that name; None removes it.

    Raises
    ------
    MeshferryError
        The file cannot be read or written.
    """
    kept = kept_shapes()
    kept.pop(name, None)
    if values is not None:
        kept[name] = dict(values)
    replace_file(presets_file(), (json.dumps(kept, indent=1) + "\n").encode("ascii"))
