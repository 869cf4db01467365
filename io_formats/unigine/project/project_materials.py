"""Materials of a project: ``.mat`` files and libraries, merged with their parents, graphs, the engine's (section 4)."""

import copy
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any
from xml.etree.ElementTree import Element

from ...core.errors import FormatError
from ...core.messages import Message, Named, Report, Text
from ...disk.rooted_files import RootedFiles
from ...encodings.xml_files import parse_xml
from .guids import GuidIndex, plain_reference

BASE_NAMES = (
    "mesh_base",
    "particles_base",
    "sky_base",
    "decal_base",
    "landscape_terrain_base",
    "landscape_terrain_detail_base",
    "water_global_base",
    "water_mesh_base",
    "gui_base",
    "text_base",
    "grass_base",
    "billboards_base",
    "clouds_base",
    "volume_fog_base",
    "volume_light_base",
    "volume_omni_base",
    "volume_proj_base",
    "volume_cloud_base",
    "volume_shaft_base",
    "terrain_global_base",
    "grass_impostor_base",
    "billboards_impostor_base",
    "billboards_cloud_base",
    "decal_terrain_hole_base",
    "mesh_pbr_base",
    "mesh",
    "mesh_transparent",
    "mesh_unlit",
    "decal",
)
"""Names of the built-in base materials; the last four are parents of material graphs."""


def name_hash(name: str) -> str:
    """Return the GUID of a built-in material, which is derived from its name."""
    return hashlib.sha1(name.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


BASES = {name_hash(prefix + name): name for name in BASE_NAMES for prefix in ("", "Unigine::")}
"""Names of the base materials by GUID."""

_FILES = {
    "5219d6ddb5dbd1520e843a369ad2b64326bb24e2": "textures/common/white.texture",
    "d15782a509aae84ba85cebcb4e69571f60a7e33a": "textures/common/black.texture",
    "a8106e01d8743fe2b0601f5d30c9eaf6cee2a4ca": "textures/common/red.texture",
    "692dbb7d56d633e22551bd47f4d92cd2d498270d": "textures/common/normal.texture",
    "edf5dbe16c25c3185d9ce7b15e99469442484856": "textures/common/checker_d.texture",
    "49631a6048f399ed9843dc46f9fada157432821d": "meshes/box.mesh",
    "88c672af6ab1177c29a264c6cec93ce326e9e612": "meshes/plane.mesh",
    "d22434214be7bafb75001301cc320847fb3ee551": "meshes/sphere.mesh",
    "001dc611e2ca7385e50593ebc1c181e2e370240c": "materials/for_world_creation/grid_for_world_creation.mat",
    "ead31ab036c7eb329af97a68a8e83d6db943a873": "materials/for_world_creation/grid_for_world_creation.mat",
}
"""Paths below ``core/`` of files of the engine that projects refer to, by GUID."""


def engine_path(guid: str) -> str:
    """Return the path of one of the engine's own files, or an empty string."""
    return f"core/{_FILES[guid]}" if guid in _FILES else ""


def base_name(reference: str) -> str:
    """Return the name of the base material that a GUID or name refers to, or an empty string."""
    plain = reference.removeprefix("Unigine::")
    return BASES.get(reference, plain if plain in BASE_NAMES else "")


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


MOST_PARENTS = 32
MATERIAL_LIMIT = 64 * 2**20
"""Largest size of a material file that is read."""
_ROOT = re.compile(rb"<(material|materials)\b([^<>]*)>")
"""Matches the root element. Attributes of well-formed XML contain no ``<``; if the pattern allowed it, matching would
take quadratic time."""
_ATTRIBUTE = re.compile(rb"""\b(name|guid)\s*=\s*["']([^"'&]*)["']""")
_VECTOR = re.compile(r"\s*(?:vec[234]\s*\(([-+\d.eEf,\s]+)\)|([-+\d.eE]+)f?)\s*\Z")


class MaterialRule(Enum):
    """Origin of a material."""

    USER = "user"
    """A material of the project, merged with all its parents."""
    USER_WITHOUT_PARENT = "user, parent missing"
    GRAPH = "graph"
    BUILT_IN = "built in"
    """A material of the engine itself, of which only the name is known."""


@dataclass(frozen=True)
class TextureUse:
    """A texture that is assigned to a slot of a material."""

    reference: str
    wrap: str = ""
    """Wrap mode: ``repeat``, ``clamp``, ``border``, or empty if not stated."""


@dataclass
class ProjectMaterial:
    """A material with everything that it inherits from its parents. Values are the texts of the files."""

    name: str
    guid: str = ""
    file: str | None = None
    """Path of the material's file, relative to the project's folder."""
    base: str | None = None
    """Name of the built-in base material, such as ``mesh_base`` or ``graph``; if it was not found, the reference to
    it."""
    rule: MaterialRule = MaterialRule.USER
    textures: dict[str, TextureUse] = field(default_factory=dict)
    """Textures by slot."""
    parameters: dict[str, str] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """For a graph's material: labels of the inputs that the texture of each slot feeds, if the graph is known."""
    graph_parent: str = ""
    """Base of a material graph, such as ``mesh_transparent``."""
    problems: list[Message] = field(default_factory=list)


@dataclass(frozen=True)
class _Entry:
    """A material in a file."""

    path: str
    name: str
    guid: str
    in_library: bool = False


class MaterialLibrary:
    """All materials of a project by GUID and name."""

    def __init__(self, files: RootedFiles, guids: GuidIndex, check: Callable[[float], object]) -> None:
        self._files = files
        self._guids = guids
        self._check = check
        self._made: dict[str, ProjectMaterial | None] = {}
        self._libraries: dict[str, Element] = {}
        self._added: list[_Entry] = []

    @cached_property
    def _entries(self) -> tuple[dict[str, _Entry], dict[str, _Entry]]:
        """All materials by GUID and by name; of several with the same one, the first in the order of paths."""
        by_guid: dict[str, _Entry] = {}
        by_name: dict[str, _Entry] = {}
        paths = sorted(key for key in self._files.paths if key.endswith(".mat"))
        for number, key in enumerate(paths):
            if number % 100 == 0:
                self._check(number / len(paths))
            self._list(self._files.paths[key], by_guid, by_name)
        return by_guid, by_name

    def _list(self, path: str, by_guid: dict[str, _Entry], by_name: dict[str, _Entry]) -> None:
        """Add the materials of a file to the dictionaries."""
        entries = self._files.parsed(path, lambda data: list(self._materials_in(path, data)), MATERIAL_LIMIT)
        for entry in entries or ():
            for guid in (entry.guid, name_hash(entry.name)):
                if guid:
                    by_guid.setdefault(guid, entry)
            by_name.setdefault(entry.name, entry)

    def _materials_in(self, path: str, data: bytes) -> Iterator[_Entry]:
        """Yield the materials in a file.

        Only libraries, and files with XML entities in names or with comments, are parsed as XML.
        """
        root = _ROOT.search(data)
        if root is None:
            raise FormatError("There is no material in the file")
        stem = PurePosixPath(path).stem
        if root[1] == b"material" and b"&" not in root[2] and b"<!--" not in data[: root.start()]:
            found = {name: value.decode("utf-8", "replace") for name, value in _ATTRIBUTE.findall(root[2])}
            yield _Entry(path, found.get(b"name") or stem, found.get(b"guid", ""))
            return
        self._libraries[path] = library = parse_xml(data)
        for element in library.iter("material"):  # this yields the root element, too
            yield _Entry(path, element.get("name") or stem, element.get("guid", ""), in_library=True)

    def add_library(self, path: str) -> str:
        """Add a library of SDK 2.0 that is outside the project's folder; return an error text, or an empty string."""
        if path not in self._libraries:
            self._list(path, *self._entries)
            self._made.clear()
        return self._files.unreadable.get(path, "")

    def find(self, reference: str) -> ProjectMaterial | None:
        """Return the material that a reference means, or None if it is missing.

        The result is shared, so the caller must not change it.
        """
        plain = plain_reference(reference)
        if plain not in self._made:
            self._made[plain] = self._merge(plain, ())
        return self._made[plain]

    def by_name(self, name: str) -> str | None:
        """Return the reference of the only material with a name, ignoring case; None if there is none or several."""
        return self._by_name.get(name.casefold())

    @cached_property
    def _by_name(self) -> dict[str, str | None]:
        """The GUID or name of the material with each name, ignoring case; None if several materials have it."""
        found: dict[str, set[str]] = {}
        by_guid, by_name = self._entries
        for entry in {*by_guid.values(), *by_name.values()}:
            found.setdefault(entry.name.casefold(), set()).add(entry.guid or entry.name)
        return {name: references.pop() if len(references) == 1 else None for name, references in found.items()}

    def _merge(self, reference: str, below: tuple[str, ...]) -> ProjectMaterial | None:
        """Return a material merged with its parents.

        ``below`` are the references of its descendants, which detect cycles.
        """
        if not reference or reference in below or len(below) > MOST_PARENTS:
            return None
        by_guid, by_name = self._entries
        entry = by_guid.get(reference) or by_name.get(reference)
        runtime = self._guids.runtimes.get(reference, "")
        if entry is None and runtime.lower().endswith(".basemat"):
            return self._graph(reference, runtime)
        if entry is not None:
            element = self._element(entry)
            return self._user_material(entry, element, (*below, reference)) if element is not None else None
        name = base_name(reference)
        return ProjectMaterial(name, base=name, rule=MaterialRule.BUILT_IN) if name else None

    def _element(self, entry: _Entry) -> Element | None:
        """Return the XML element of a material, or None if its file cannot be read."""
        if not entry.in_library:
            return self._files.parsed(entry.path, parse_xml, MATERIAL_LIMIT)
        stem = PurePosixPath(entry.path).stem
        materials = self._libraries[entry.path].iter("material")
        return next(element for element in materials if (element.get("name") or stem) == entry.name)

    def _user_material(self, entry: _Entry, element: Element, below: tuple[str, ...]) -> ProjectMaterial:
        """Return a material of a file, with values inherited from the first of its parents that exists."""
        stated = [plain_reference(element.get(key)) for key in ("parent", "parent_name", "base_material")]
        parents = [reference for reference in stated if reference]
        found = None
        missing = []
        for reference in parents:
            found = self._merge(reference, below)
            if found is not None:
                break
            missing.append(reference)
        base = stated[2]
        material = copy.deepcopy(found) if found else ProjectMaterial("", base=base_name(base) or base or None)
        material.name, material.guid, material.file = entry.name, entry.guid, entry.path
        material.rule = MaterialRule.USER if found else MaterialRule.USER_WITHOUT_PARENT
        report = Report(material.problems, Text("material '{}'", Named("material", entry.name)))
        for reference in missing:
            report.loss("missing-parent", "its parent {} is missing", reference)
        _apply(element, material)
        return material

    def _graph(self, reference: str, runtime: str) -> ProjectMaterial | None:
        """Return the material of a graph, given the path of its runtime."""
        graph = self._files.parsed(runtime, parse_basemat, MATERIAL_LIMIT)
        if graph is None:
            return None
        source = self._guids.source_of(reference)
        named = source or self._guids.alias_of(reference) or runtime
        material = ProjectMaterial(
            PurePosixPath(named).stem,
            guid=reference,
            file=source or runtime,
            base="graph",
            rule=MaterialRule.GRAPH,
            textures={slot: TextureUse(text, wrap) for slot, (text, wrap) in graph.textures.items()},
            parameters=graph.parameters,
            states=graph.states,
            options=graph.options,
            graph_parent=graph.parent,
        )
        if source is not None and source.lower().endswith(".mgraph"):
            inputs = self._files.parsed(source, texture_inputs, MATERIAL_LIMIT)
            if inputs is not None:
                material.inputs = {
                    slot: inputs.get(plain_reference(use.reference), ()) for slot, use in material.textures.items()
                }
        return material


def _apply(element: Element, material: ProjectMaterial) -> None:
    """Overwrite inherited values with the values in the file of a material."""
    for child in element:
        name = child.get("name", "")
        text = (child.text or "").strip()
        if child.tag == "options":
            material.options.update(child.attrib)
        elif child.tag == "blend":
            material.options.update({f"blend_{key}": value for key, value in child.attrib.items()})
        elif child.tag == "texture" and not len(child):
            material.textures[name] = TextureUse(text, child.get("wrap", ""))
        elif child.tag == "state":
            material.states[name] = text
        elif child.tag == "parameter":
            if "1" in {child.get("expression"), child.get("use_expression")}:
                _apply_expression(name, text, material)
            else:
                material.parameters[name] = text


def _apply_expression(name: str, text: str, material: ProjectMaterial) -> None:
    """Set a parameter to the numbers of a constant expression; report an expression that is not constant."""
    constant = _VECTOR.match(text)
    if constant is None:
        report = Report(material.problems, Text("material '{}'", Named("material", material.name)))
        report.loss("expression-not-used", "parameter '{}' is an expression; not used", name)
        return
    numbers = (constant[1] or constant[2]).replace("f", "").replace(",", " ")
    material.parameters[name] = " ".join(numbers.split())
