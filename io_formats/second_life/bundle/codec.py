"""Bytes <-> a model bundle: an LLSD map and the assets in it (formats page, section 8)."""

from dataclasses import dataclass, field
from typing import Any

from ...core.errors import FormatError, UnsupportedFormatError
from ...core.format import OutputFile
from ...core.messages import Message, Report, Text, counted
from ..asset.codec import Asset, asset_inflater, contents_of, of_mesh, read_within
from ..asset.codec import write as write_asset
from ..models.llsd import MOST_VALUES, Allowance, RawString, as_integer, encoded, sorted_map
from ..models.llsd import read as read_value
from ..models.llsd import write as write_value
from ..options import ModelReadOptions
from .format import INSTANCES, MESHES

VERSION = 3
"""The only version that the viewer reads."""


@dataclass
class Bundle:
    """A model bundle. ``mapping.instances_of`` decodes its instances, ``bundle_of`` encodes them."""

    values: dict[str, Any] = field(default_factory=dict)
    """The map in its original order; the content of ``mesh`` is stored in ``meshes`` and written from there."""
    meshes: list[Asset] = field(default_factory=list)
    warnings: list[Message] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Name of the first model, or empty."""
        name = self.values.get("name", "")
        return name if isinstance(name, str) else ""


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
        report.loss("bytes-after-end", "{} after the end ignored", counted(len(data) - end, "byte"))
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


_LONGEST_HEADER = 1 << 20
"""Maximum header size of an asset in the bundle; it can be large, as it holds material names and is not downloaded."""
_DELAY = 2.0
"""Seconds by which the bundle is dated after the Collada file, since the viewer only opens a bundle that is newer."""


def write(bundle: Bundle) -> bytes:
    """Encode a bundle (formats page, section 8).

    Keys keep the order of ``bundle.values``; if that has no ``mesh``, they are sorted.

    Raises
    ------
    ExportError
        A value cannot be stored.
    """
    meshes = [RawString(write_asset(asset, longest_header=_LONGEST_HEADER)) for asset in bundle.meshes]
    values = {**bundle.values, MESHES: meshes}
    return write_value(values if MESHES in bundle.values else sorted_map(values))


def write_files(bundle: Bundle, stem: str) -> list[OutputFile]:
    """Encode the Collada file that the viewer needs beside a bundle, then the bundle, which must be newer."""
    return [OutputFile(f"{stem}.dae", _companion(bundle)), OutputFile(f"{stem}.slm", write(bundle), delay=_DELAY)]


def _companion(bundle: Bundle) -> bytes:
    """Encode the models of a bundle at their finest level, as Collada without textures.

    The viewer's file picker does not show bundles: the user selects the Collada file, and the viewer opens a newer
    bundle beside it instead. If its setting is off, it uploads the selected file (formats page, section 8).

    Raises
    ------
    ExportError
        A model cannot be written as Collada.
    """
    from ..upload_set import codec as upload_set_codec
    from ..upload_set import mapping as upload_set_mapping
    from ..upload_set.format import WriteOptions
    from .mapping import to_scene

    scene = to_scene(bundle, "", ModelReadOptions())
    for material in scene.materials:
        material.texture = None  # the viewer takes textures only from the bundle
    return upload_set_codec.write(upload_set_mapping.from_scene(scene, WriteOptions()))
