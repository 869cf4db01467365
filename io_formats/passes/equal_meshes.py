"""Find meshes that are equal in all arrays, so that they are processed and stored once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from ..core.scene import Mesh

_Counts = tuple[int, int, tuple[str, ...]]


class EqualMeshes:
    """Finds equal meshes. Only meshes with equal counts are compared, by a hash of their content."""

    def __init__(self) -> None:
        self._lone: dict[_Counts, Mesh] = {}
        """The first mesh of each count, until a second mesh with the same count requires its hash."""
        self._by_hash: dict[_Counts, dict[bytes, Mesh]] = {}
        self._firsts: dict[int, Mesh] = {}
        """The first of each set of equal meshes by its id. Other meshes are not kept in memory."""

    def first(self, mesh: Mesh) -> Mesh:
        """Return the first mesh that equals this one: the same object for all equal meshes."""
        if id(mesh) in self._firsts:
            return mesh
        found = self._find(mesh)
        self._firsts[id(found)] = found
        return found

    def _find(self, mesh: Mesh) -> Mesh:
        counts = (len(mesh.points), len(mesh.corner_point), tuple(mesh.materials))
        if counts not in self._lone:
            self._lone[counts] = mesh
            return mesh
        hashed = self._by_hash.get(counts)
        if hashed is None:
            lone = self._lone[counts]
            hashed = self._by_hash[counts] = {_hash_of(lone): lone}
        return hashed.setdefault(_hash_of(mesh), mesh)


def _hash_of(mesh: Mesh) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    _add(digest, mesh)
    return digest.digest()


def _add(digest: Any, value: Any) -> None:
    """Add a value to a hash: the bytes of arrays, the fields of dataclasses, the items of containers."""
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).data)
    elif is_dataclass(value):
        for field in fields(value):
            _add(digest, getattr(value, field.name))
    elif isinstance(value, Mapping):
        _add(digest, list(value.items()))
    elif isinstance(value, (list, tuple)):
        digest.update(f"{len(value)}[".encode())
        for element in value:
            _add(digest, element)
    else:
        digest.update(repr(value).encode("utf-8", "surrogatepass") + b"\0")
