"""Document -> bytes, and the files of a new scene (docs/formats/unigine_writing.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from ...core.format import OutputFile
from ..project import new_assets
from ..project.guids import META
from ..project.new_assets import AssetKind, NewAsset, meta_text
from ..values import escaped, matrix_words, transform_element
from .document import SceneFile, SceneNode, SurfaceSetting

_HEAD = b'<?xml version="1.0" encoding="utf-8"?>\n'
_ORDER = (AssetKind.TEXTURE, AssetKind.MATERIAL, AssetKind.MESH, AssetKind.NODE)


def write(document: SceneFile) -> bytes:
    """Encode a document. The bytes of an imported document are returned unchanged."""
    return document.original or encode_new(document, {})


def write_files(document: SceneFile, stem: str) -> list[OutputFile]:
    """Encode images, materials, meshes, parts and ``stem.node``, each with a ``.meta`` unless it has one.

    Raises
    ------
    ExportError
        An existing file would be replaced that no earlier export wrote, or that was changed since.
    """
    name = f"{stem}.node"
    new = document.new_set
    if new is None:
        return [OutputFile(name, write(document))]
    assets = sorted(new.assets, key=lambda asset: _ORDER.index(asset.kind))
    assets.append(NewAsset(name, AssetKind.NODE, lambda guids: encode_new(document, guids)))
    salt = _salt(assets)
    guids: dict[str, str] = {}
    for asset in assets:
        guids[asset.name] = new.target.guid(asset.name, salt)
    outputs: list[OutputFile] = []
    for asset in assets:
        if new.target.meta(asset.name) is None:
            meta = meta_text(asset, guids[asset.name], new.target.version)
            outputs.append(OutputFile(asset.name + META, meta))
        outputs.append(OutputFile(asset.name, asset.encode(guids)))
    return new_assets.with_manifest(new.target.folder, outputs)


def _salt(assets: list[NewAsset]) -> str:
    """Return a text that differs between scenes with different content, from which GUIDs are derived."""
    digest = hashlib.sha1(usedforsecurity=False)
    for asset in assets:
        digest.update(asset.name.encode("utf-8", "surrogatepass"))
        if asset.kind in {AssetKind.MESH, AssetKind.NODE}:
            digest.update(asset.encode({}))
    return digest.hexdigest()


def encode_new(document: SceneFile, guids: Mapping[str, str]) -> bytes:
    """Encode a new document; ``guids`` has the GUIDs of the assets that it refers to."""
    lines = [_HEAD, b'<nodes version="' + escaped(document.version) + b'">\n']
    children: dict[int, list[int]] = {}
    for index, node in enumerate(document.nodes):
        children.setdefault(node.parent, []).append(index)
    waiting: list[tuple[int, int | None]] = [(1, index) for index in reversed(children.get(-1, []))]
    while waiting:
        depth, number = waiting.pop()
        indent = b"\t" * depth
        if number is None:
            lines.append(indent + b"</node>\n")
            continue
        lines += [indent + line + b"\n" for line in _node_lines(document.nodes[number], guids)]
        waiting.append((depth, None))
        waiting += [(depth + 1, child) for child in reversed(children.get(number, []))]
    return b"".join([*lines, b"</nodes>\n"])


def _node_lines(node: SceneNode, guids: Mapping[str, str]) -> list[bytes]:
    """Return the lines of a node's element, without its child nodes and its end tag."""
    hidden = b"" if node.is_enabled else b' enabled="0"'
    tag = b'<node type="%s" id="%s"%s name="%s">'
    lines = [tag % (escaped(node.kind), escaped(node.identifier), hidden, escaped(node.name))]
    for name, value in node.values.items():
        content = f"guid://{guids[value]}" if value in guids else value
        lines.append(b"\t<%s>%s</%s>" % (name.encode(), escaped(content), name.encode()))
    lines += [b"\t" + _surface_element(surface, guids) for surface in node.surfaces]
    return [*lines, b"\t" + transform_element(matrix_words(node.matrix))]


def _surface_element(surface: SurfaceSetting, guids: Mapping[str, str]) -> bytes:
    values = {"name": surface.name}
    if not surface.is_enabled:
        values["enabled"] = "0"
    values |= dict.fromkeys(surface.flags, "1")
    if surface.nearest > 0:
        values["min_visible_distance"] = f"{surface.nearest:.9g}"
    if surface.farthest is not None:
        values["max_visible_distance"] = f"{surface.farthest:.9g}"
    if surface.material:
        values["material"] = guids.get(surface.material, surface.material)
    attributes = [b'%s="%s"' % (name.encode(), escaped(value)) for name, value in values.items()]
    return b"<surface " + b" ".join(attributes) + b"/>"
