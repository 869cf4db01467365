"""Dataclasses that mirror a node or world file; sections refer to docs/formats/unigine_scenes.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.messages import Message
from ..mesh.document import MeshFile
from ..project.new_assets import NewAsset, TargetFolder

Matrices = npt.NDArray[np.float64]
"""(4, 4) or (n, 4, 4) for column vectors."""

MOST_NODES = 1_000_000
"""Largest number of nodes of a scene. Nodes of referenced files count once for each reference."""
MOST_LEVELS = 32
"""Maximum depth of references from node file to node file."""

MESH_KINDS = (
    "ObjectMeshStatic",
    "ObjectMeshSkinned",
    "ObjectMeshSkinnedLegacy",
    "ObjectMeshCluster",
    "ObjectMeshClutter",
    "ObjectMeshDynamic",
)
REFERENCE_FIELDS = {"NodeReference": "reference", "NodeLayer": "layer"}
"""Name of the field that holds the reference to a node file, by type of the node."""


def _identity() -> Matrices:
    return np.identity(4)


@dataclass(frozen=True)
class SurfaceSetting:
    """Settings for a surface of the mesh of a node (section 3)."""

    name: str
    material: str = ""
    is_enabled: bool = True
    nearest: float = 0.0
    """Distance in metres from which on the surface is shown; 0 or less for the finest level of detail."""
    farthest: float | None = None
    """Distance in metres up to which the surface is shown; None without a limit. Only set for new files."""
    flags: tuple[str, ...] = ()
    """Names of further attributes that have the value 1. Only set for new files."""


@dataclass
class SceneNode:
    """A node (section 2)."""

    kind: str
    name: str = ""
    identifier: str = ""
    """Value of the attribute ``id``, which is unique in the file."""
    parent: int = -1
    is_enabled: bool = True
    matrix: Matrices = field(default_factory=_identity)
    """(4, 4), relative to the parent."""
    surfaces: tuple[SurfaceSetting, ...] = ()
    values: dict[str, str] = field(default_factory=dict)
    """Attributes and texts of child elements that are not fields of this class, by name."""
    geometry: MeshFile | None = None
    """A mesh inside the file (section 4)."""
    instances: Matrices | None = None
    """(n, 4, 4) matrices of the instances of a cluster's mesh, relative to the node."""


@dataclass
class NewSet:
    """The additional files of a new scene. They refer to one another by name until their GUIDs are known."""

    target: TargetFolder
    assets: list[NewAsset] = field(default_factory=list)
    """Assets in the order of writing."""
    findings: list[Message] = field(default_factory=list)
    """Findings about the meshes."""


@dataclass
class SceneFile:
    """A ``.node`` or ``.world`` file. In its list of nodes, parents come before their children."""

    root: str
    """Name of the root element: ``nodes``, ``node`` or ``world``."""
    version: str = ""
    nodes: list[SceneNode] = field(default_factory=list)
    libraries: list[str] = field(default_factory=list)
    """References to material libraries, only in files of SDK 2.0."""
    digest: str = ""
    """SHA-256 of the file's bytes, by which an export verifies that the file is unchanged."""
    warnings: list[Any] = field(default_factory=list)
    """Warnings of the reader; not part of the file."""
    original: bytes = field(default=b"", repr=False)
    """Bytes of the imported file. An export writes them unchanged, since the other fields do not store all data."""
    new_set: NewSet | None = None
    """The additional files of a new scene; None for an imported file."""
