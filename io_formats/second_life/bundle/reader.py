"""Bytes -> a model bundle."""

from __future__ import annotations

from typing import Any

from ...core.errors import FormatError, UnsupportedFormatError
from ...core.messages import Report, Text
from ..asset.codec import asset_inflater, contents_of, of_mesh, read_within
from ..models.llsd import MOST_VALUES, Allowance, RawString, as_integer, encoded
from ..models.llsd import read as read_value
from .document import INSTANCES, MESHES, VERSION, Bundle

_MOST_MESHES = 1024


def read(data: bytes, *, inflated_limit: int | None = None) -> Bundle:
    """Decode a model bundle (formats page, section 8).

    Parameters
    ----------
    data:
        The file.
    inflated_limit:
        Maximum inflated size of all blocks of all meshes (default: the larger of 64 MiB and 64 times the file size).

    Raises
    ------
    FormatError
        The map or a mesh in it is damaged, or the version is not 3.
    """
    values, end = _map(data)
    version = as_integer(values.get("version"))
    if version != VERSION:
        said = Text("no version") if version is None else Text("version {:,}", version)
        raise UnsupportedFormatError("The model bundle is of {}; viewers only read version {}", said, VERSION)
    if not isinstance(values.get(INSTANCES), list):
        raise FormatError("The model bundle is damaged: it has no list of instances")
    bundle = Bundle({**values, MESHES: None})
    report = Report(bundle.warnings)
    if end < len(data):
        report.loss("bytes-after-end", "{:,} bytes after the end are ignored", len(data) - end)
    inflating = asset_inflater(len(data), inflated_limit)
    for number, asset in enumerate(_assets(values), 1):
        if not isinstance(asset, RawString | str):
            report.change("mesh-as-binary", "Mesh {} is stored as binary data, which viewers ignore", number)
        part = f"mesh {number}"
        mesh = read_within(_raw(asset, part), inflating, item=part)
        bundle.warnings += [of_mesh(number, message) for message in mesh.warnings]
        bundle.meshes.append(mesh)
    return bundle


def _map(data: bytes) -> tuple[dict[str, Any], int]:
    values, end = read_value(data, allowance=Allowance(2 * MOST_VALUES), item="the model bundle")
    if not isinstance(values, dict):
        raise FormatError("The file is not a model bundle: it does not hold a map", offset=0)
    return values, end


def _assets(values: dict[str, Any]) -> list[Any]:
    found = values.get(MESHES)
    if not isinstance(found, list) or not found:
        raise FormatError("There is no mesh in the model bundle")
    if len(found) > _MOST_MESHES:
        raise FormatError("The model bundle is damaged: it has {:,} meshes", len(found))
    return found


def _raw(asset: Any, part: str) -> bytes:
    if isinstance(asset, str):
        return encoded(asset)
    if isinstance(asset, bytes):
        return bytes(asset)
    raise FormatError("The model bundle is damaged: this is not a mesh asset", item=part)


def same_content(one: bytes, other: bytes) -> bool:
    """Return whether two bundles have the same keys and values in the same order, and the same assets."""
    return one == other or _contents_of(one) == _contents_of(other)


def _contents_of(data: bytes) -> tuple[Any, ...]:
    values, _ = _map(data)
    assets = [contents_of(_raw(asset, f"mesh {number}")) for number, asset in enumerate(_assets(values), 1)]
    return [(key, repr(value)) for key, value in values.items() if key != MESHES], list(values), assets
