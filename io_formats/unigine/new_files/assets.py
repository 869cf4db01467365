"""Files that an export adds to a project, before their GUIDs are known (docs/formats/unigine_writing.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum


class AssetKind(Enum):
    """Kind of an asset: the element ``type`` of its ``.meta`` file."""

    MESH = "mesh"
    NODE = "node"
    MATERIAL = "material"
    TEXTURE = "texture"


@dataclass(frozen=True)
class Parameter:
    """An import setting in a ``.meta`` file."""

    type: str
    """Type of the value, such as ``bool``, ``int`` or ``string``."""
    name: str
    value: str


@dataclass(frozen=True)
class NewAsset:
    """A file beside the scene, which gets a ``.meta`` file with its GUID."""

    name: str
    """Path with extension, relative to the folder of the scene, with ``/``."""
    kind: AssetKind
    encode: Callable[[Mapping[str, str]], bytes]
    """Function that returns the content, given the GUIDs of all new assets by their names; called once for each
    file."""
    parameters: tuple[Parameter, ...] = ()
    """Import settings, in the order of the file."""
