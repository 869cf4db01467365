"""Bytes -> a Collada file."""

from __future__ import annotations

from ...core.errors import FormatError
from ...core.messages import Report, counted, joined
from . import numbers
from .document import Collada
from .findings import Findings
from .geometry import GeometryReader
from .materials import MaterialReader
from .nodes import NodeReader
from .skins import SkinReader
from .sources import Sources
from .tree import Tree, name_of, parse_tree, text_of

_AXES = ("X_UP", "Y_UP", "Z_UP")
_VALUES_IN_ANY_FILE = 1_000_000


def read(data: bytes, *, inflated_limit: int | None = None) -> Collada:
    """Decode a Collada file (page ``docs/formats/collada.md``, sections 2 to 5).

    Raises
    ------
    FormatError
        The file is not Collada, is not well-formed, has a document type, is nested too deeply, or no object has a mesh.
    """
    document = Collada()
    report = Report(document.warnings)
    tree = parse_tree(data, report)
    _read_asset(tree, document, report)
    findings = Findings()
    sources = Sources(tree, findings, max(_VALUES_IN_ANY_FILE, len(data)))
    geometries = GeometryReader(tree, sources, findings, max(_VALUES_IN_ANY_FILE, len(data)))
    skins = SkinReader(tree, sources, geometries, findings)
    materials = MaterialReader(tree)
    nodes = NodeReader(tree, geometries, skins, materials, findings)
    nodes.read()
    for element in tree.root.iter("geometry"):
        findings.add("geometry-without-object", name_of(element), not geometries.is_read(element))
    document.nodes, document.materials = nodes.nodes, materials.materials
    document.geometries, document.skins = geometries.geometries, skins.skins
    causes = findings.report(report)
    used = [geometries.geometries[instance.geometry] for node in nodes.nodes for instance in node.instances]
    if not any(geometry.groups for geometry in used):
        if causes:
            raise FormatError("No object in the file has a mesh with polygons: {}", causes[0])
        raise FormatError("No object in the file has a mesh with polygons")
    _report_left_out(tree, report)
    return document


def _read_asset(tree: Tree, document: Collada, report: Report) -> None:
    document.version = tree.root.get("version", "")
    tools = [text_of(tool) for tool in tree.root.findall("asset/contributor/authoring_tool")]
    document.tool = next(filter(None, tools), "")
    axis = text_of(tree.root.find("asset/up_axis")).upper()
    document.up_axis = axis if axis in _AXES else "Y_UP"
    unit = tree.root.find("asset/unit")
    stated = "1" if unit is None else unit.get("meter", "1")
    meter = numbers.exact_floats(stated)
    if len(meter) == 1 and 1e-6 <= meter[0] <= 1e6:
        document.meter = float(meter[0])
    else:
        report.change("unit-invalid", "The unit '{}' is not a length; metres were taken", stated)


def _report_left_out(tree: Tree, report: Report) -> None:
    counts = dict.fromkeys(("camera", "light", "animation", "morph"), 0)
    for element in tree.root.iter():
        if element.tag in counts and (element.tag != "animation" or element.find("channel") is not None):
            counts[element.tag] += 1
    texts = [
        counted(counts["camera"], "camera"),
        counted(counts["light"], "light"),
        counted(counts["animation"], "animation"),
        counted(counts["morph"], "morph"),
    ]
    texts = [text for text, number in zip(texts, counts.values(), strict=True) if number]
    if texts:
        report.note("elements-left-out", "{} left out", joined(texts))


def same_content(one: bytes, other: bytes) -> bool:
    """Return whether two files are equal, apart from blanks at their ends."""
    return one.strip() == other.strip()
