"""Check a mesh against the rules of UNIGINE (docs/formats/unigine.md, sections 11 and 12)."""

from pathlib import Path

import numpy as np

from ...core.messages import Message, Named, Report, Text, counted, listed, of_kind
from ...geometry.vertices import repeats_corners
from ...projects import Projects
from ..bones import check_bones
from ..project.guids import RUNTIMES
from ..skeleton.references import REST, check_reference
from . import document as mesh_document
from .codec import soup_name
from .document import MeshFile, Surface, Weights
from .document_builder import MOST_SURFACES
from .format import BLOCK_VERSIONS, SEPARATE_SKELETON_VERSION, SHORT_TANGENT_VERSION, ReadOptions, WriteOptions

MOST_SURFACE_BONES = 128
"""Maximum number of bones for one surface in SDKs before 2.20, and from 2.21 on."""
MOST_TARGETS = 7
"""Maximum number of morph targets that are active at the same time in SDKs before 2.20."""
_PROVEN_POOL = 65536
"""Number of vertices from which a surface of ms14 or later is reported. No known file has so many, and the
documentation does not define their indices clearly."""


def check(document: MeshFile) -> list[Message]:
    """Return errors that prevent a mesh from loading, and warnings about data that may look wrong."""
    report = Report()
    surfaces = document.surfaces or document.soup
    if not surfaces:
        report.warning("no-surfaces", "the mesh has no surfaces; nothing is shown")
    if len(surfaces) > MOST_SURFACES:
        report.error("many-surfaces", "{:,} surfaces; UNIGINE allows {:,}", len(surfaces), MOST_SURFACES)
    names = [surface.name for surface in document.surfaces] or [soup_name(surface) for surface in document.soup]
    mesh_document.check_names(names, report.warning)
    if "" in names:
        report.warning("no-name", "{} no name", counted(names.count(""), "surface has", "surfaces have"))
    check_bones(document.bones, report)
    _check_common(document, report)
    report.messages += document.findings
    for surface in document.surfaces:
        _check_surface(document, surface, report.about(Text("Surface '{}'", Named("layer", surface.name))))
    return report.messages


def check_links(document: MeshFile, path: Path, projects: Projects, _options: ReadOptions) -> list[Message]:
    """Return warnings about the skeleton file to which a skinned mesh refers."""
    guid, stated = document.skeleton_guid, document.skeleton_path
    return check_reference(document.bones, guid, stated, path, projects, REST)


def check_in_context(document: MeshFile, _options: WriteOptions, path: Path | None) -> list[Message]:
    """Report a mesh made from a source file whose export would become a runtime or replace an unrelated file."""
    report = Report()
    if path is not None and document.own_files is not None:
        place = path.absolute()
        if RUNTIMES in place.as_posix().lower() or (place.exists() and str(place) not in document.own_files):
            report.error(
                "source-replaces-mesh",
                "The mesh was made from an FBX file and differs from the engine's own; it is written neither to "
                ".runtimes nor over another mesh. Choose a new file",
            )
    return report.messages


def _check_common(document: MeshFile, report: Report) -> None:
    """Check properties of all surfaces, with one message for each kind."""
    empty = of_kind("layer", (surface.name for surface in document.surfaces if not len(surface.c_indices)))
    report.warning_of("no-triangles", "{} no triangles: {}", empty, "surface has", "surfaces have")
    bare = [surface.name for surface in document.surfaces if surface.uv0 is None and len(surface.c_indices)]
    text = "{} no first UV map, which textures and normal maps need: {}"
    report.warning_of("no-uv-map", text, of_kind("layer", bare), "surface has", "surfaces have")
    flat = {surface.name: int(np.count_nonzero(repeats_corners(surface.c_indices))) for surface in document.surfaces}
    if any(flat.values()):
        number = counted(sum(flat.values()), "triangle has", "triangles have")
        report.warning(
            "repeated-corners", "{} a corner twice: {}", number, listed([name for name in flat if flat[name]])
        )


def _check_surface(document: MeshFile, surface: Surface, report: Report) -> None:
    if not surface.targets:
        report.error("no-vertices", "it has no vertices at all, not even a base shape")
        return
    base = surface.targets[0]
    if len(base.positions) and mesh_document.boxes_disagree(surface.bounds[:6], base.positions):
        report.warning("wrong-bounds", "its bounds disagree with its vertices; it may vanish at the edge of the view")
    if document.version != SHORT_TANGENT_VERSION:
        bent = sum(mesh_document.bent_tangents(target.tangents) for target in surface.targets)
        if bent:
            report.warning("not-unit-tangents", "{} not of unit length", counted(bent, "tangent is", "tangents are"))
    if surface.weights is not None:
        _check_weights(surface.weights, document.version, report)
    if len(surface.targets) - 1 > MOST_TARGETS:
        template = "{} morph targets; SDKs before 2.20 play {} at a time"
        report.warning("many-shape-keys", template, len(surface.targets) - 1, MOST_TARGETS)
    if document.version in BLOCK_VERSIONS and max(len(base.positions), len(base.tangents)) >= _PROVEN_POOL:
        template = "no file of {} with {:,} vertices or more a surface is known; split it"
        report.warning("large-surface", template, document.version, _PROVEN_POOL)


def _check_weights(weights: Weights, version: str, report: Report) -> None:
    loose = int(np.count_nonzero(weights.counts == 0))
    if loose:
        number = counted(loose, "vertex has", "vertices have")
        report.warning("vertices-without-weights", "{} no weights; no bone moves them", number)
    uneven = mesh_document.uneven_weights(weights.counts, weights.values)
    if uneven:
        number = counted(uneven, "vertex has", "vertices have")
        report.warning("unnormalised-weights", "{} weights that do not sum to 1", number)
    bones = len(np.unique(weights.bones))
    if bones > MOST_SURFACE_BONES:
        template = "{} bones move it; {} {} for each surface; separate it"
        who = Text("SDKs before 2.20 allow")
        if version == SEPARATE_SKELETON_VERSION:
            who = Text("the importer of SDK 2.21 warns above")
        report.warning("many-bones", template, bones, who, MOST_SURFACE_BONES)
