"""Material graphs: settings from ``.basemat`` files, inputs of textures from ``.mgraph`` files (section 4.4)."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import FormatError

_HEAD = re.compile(r"\bparent\s*=\s*(?:Unigine::)?(\w+)")
_TEXTURE = re.compile(r'^[ \t]*Texture2D[ \t]+"?([^"=\s]+)"?[ \t]*=[ \t]*"([^"\n]*)"(.*)$', re.MULTILINE)
_PARAMETER = re.compile(
    r'^[ \t]*(?:Color|Slider|(?:Float|Int)[234]?)[ \t]+(?:"([^"\n]+)"|(\w+))[ \t]*=[ \t]*\[?[ \t]*([-+\d.eE \t]+)\]?',
    re.MULTILINE,
)
_OPTION = re.compile(r"^[ \t]*Option[ \t]+(\w+)[ \t]*=[ \t]*(\w+)", re.MULTILINE)
_BARE_OPTION = re.compile(
    r"^[ \t]*Option[ \t]+(transparent|two_sided|blend_src|blend_dest)[ \t]*(\w+)[ \t\r]*$", re.MULTILINE
)
"""Matches an option without an equals sign, as graphs of version 2 write it, for example ``Option blend_src5``."""
_EMISSION = re.compile(r"^[ \t]*State[ \t]+emission[ \t]*=[ \t]*(\w+)", re.MULTILINE)
_WRAP = re.compile(r"\bwrap\s*=\s*\[([^\]]*)\]")
TEXT_LIMIT = 4 * 2**20


@dataclass
class GraphMaterial:
    """The content of a ``.basemat`` file of a material graph."""

    parent: str = ""
    """Name of the base of the material, such as ``mesh`` or ``mesh_transparent``."""
    textures: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Reference and wrap mode of the texture in each slot."""
    parameters: dict[str, str] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)


def parse_basemat(data: bytes) -> GraphMaterial:
    """Parse the lines of a ``.basemat`` file that describe textures, parameters and options."""
    text = data[:TEXT_LIMIT].decode("utf-8", "replace")
    head = _HEAD.search(text[: text.find("{") + 1 or 1000])
    found = GraphMaterial(head[1] if head else "")
    for slot, reference, rest in _TEXTURE.findall(text):
        wrap = _WRAP.search(rest)
        found.textures[slot] = (reference, _wrap_mode(wrap[1]) if wrap else "")
    found.parameters = {quoted or bare: value.strip() for quoted, bare, value in _PARAMETER.findall(text)}
    found.options = dict(_BARE_OPTION.findall(text)) | dict(_OPTION.findall(text))
    if emission := _EMISSION.search(text):
        found.states["emission"] = emission[1]
    return found


def _wrap_mode(modes: str) -> str:
    """Return the wrap mode if it is the same in both directions, otherwise ``repeat``."""
    found = {mode[:-2] for mode in modes.split() if mode.endswith(("_x", "_y"))}
    return found.pop() if len(found) == 1 else "repeat"


def texture_inputs(data: bytes) -> dict[str, tuple[str, ...]]:
    """Return, by texture reference, the labels of the material inputs that each texture of a ``.mgraph`` file feeds.

    Raises
    ------
    FormatError
        The content is not such a file.
    """
    try:
        graph = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_with_lists)
    except (ValueError, RecursionError) as problem:
        raise FormatError("The JSON is not well-formed: {}", problem) from None
    kinds: dict[str, str] = {}
    textures: dict[str, str] = {}
    for kind, node in _nodes(graph):
        name = _text(node, "guid")
        kinds[name] = kind
        if kind == "Texture2D":
            asset = next((_text(prop, "asset") for prop in _properties(node) if _text(prop, "asset")), "")
            if asset:
                textures[name] = asset.strip().removeprefix("guid://")
    following: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for anchor in _objects(_objects([graph], "anchors"), "anchor"):
        following[_text(anchor, "output_node")].append((_text(anchor, "input_node"), _text(anchor, "input_label")))
    labels: dict[str, set[str]] = defaultdict(set)
    for node_name, texture in textures.items():
        labels[texture] |= _reached_labels(node_name, following, kinds)
    return {texture: tuple(sorted(found - {""})) for texture, found in labels.items()}


def _reached_labels(start: str, following: dict[str, list[tuple[str, str]]], kinds: dict[str, str]) -> set[str]:
    """Return the labels of the material's inputs that a node feeds, directly or through other nodes."""
    labels = set()
    waiting, done = [start], {start}
    while waiting:
        for target, label in following.get(waiting.pop(), ()):
            if kinds.get(target, "Material") == "Material":
                labels.add(label)
            elif target not in done:
                done.add(target)
                waiting.append(target)
    return labels


def _with_lists(pairs: list[tuple[str, Any]]) -> dict[str, list[Any]]:
    """Collect the values of repeated keys of a JSON object."""
    collected: dict[str, list[Any]] = defaultdict(list)
    for key, value in pairs:
        collected[key].append(value)
    return collected


def _flat(values: list[Any]) -> Iterator[Any]:
    """Yield values and the elements of lists among them."""
    for value in values:
        if isinstance(value, list):
            yield from value
        else:
            yield value


def _objects(parents: list[Any], key: str) -> list[Any]:
    """Return the objects under a key in several parent objects, whether the key is repeated or its value is a list."""
    return [
        child
        for parent in parents
        if isinstance(parent, dict)
        for child in _flat(parent.get(key, []))
        if isinstance(child, dict)
    ]


def _nodes(graph: Any) -> Iterator[tuple[str, dict[str, list[Any]]]]:
    """Yield the type and the content of each node of a graph."""
    for group in _objects([graph], "nodes"):
        for kind, content in group.items():
            yield from ((kind, node) for node in _flat(content) if isinstance(node, dict))


def _properties(node: dict[str, list[Any]]) -> list[Any]:
    holders = _objects([node], "props")
    return [*holders, *_objects(holders, "prop")]


def _text(parent: Any, key: str) -> str:
    """Return the first text value under a key, or an empty string."""
    values = parent.get(key, []) if isinstance(parent, dict) else []
    return values[0] if values and isinstance(values[0], str) else ""
