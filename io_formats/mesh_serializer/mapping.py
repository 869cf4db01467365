"""Document <-> Scene, what ``meshferry inspect`` prints, and checks against the limits of reader and Unity."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.import_choices import all_choices
from ..core.messages import Message, Report, counted
from ..core.scene import Mesh, Node, Role, Scene, Surface
from ..geometry.triangles import part_of_slots, triangle_runs
from ..geometry.vertices import count_loose, repeats_corners
from .document import MOST_SAFE, Document, Variant
from .format import ReadOptions, WriteOptions
from .scene_builder import SceneBuilder

_COARSE = 0.001
"""Position steps above this, in metres, leave visible gaps."""


def check(document: Document) -> list[Message]:
    """Return warnings about data that other programs reject or show differently. None of it prevents writing."""
    report = Report()
    _check_counts(document, report)
    _check_triangles(document, report)
    _check_directions(document, report)
    if document.variant is not Variant.CURRENT:
        report.warning("other-variant", "the file is a variant that programs for MeshSerializer2 do not read")
    step = _step(document)
    if step > _COARSE:
        template = "positions are rounded to steps of {:.3g} mm; a smaller model has finer steps"
        report.warning("coarse-positions", template, 1000 * step)
    return report.messages


def _check_counts(document: Document, report: Report) -> None:
    vertices, triangles = len(document.positions), len(document.triangles)
    if not vertices or not triangles:
        report.warning("no-triangles", "it has no triangles, so nothing is shown")
        return
    if max(vertices, triangles) > MOST_SAFE:
        template = "{:,} vertices and {:,} triangles; the original reader refuses more than {:,} of either"
        report.warning("large-mesh", template, vertices, triangles, MOST_SAFE)
    loose = count_loose(document.triangles, vertices)
    if loose:
        report.warning("loose-vertices", "{} to no triangle", counted(loose, "vertex belongs", "vertices belong"))


def _check_triangles(document: Document, report: Report) -> None:
    repeated = int(np.count_nonzero(repeats_corners(document.triangles)))
    if repeated:
        report.warning("repeated-corners", "{} a vertex twice", counted(repeated, "triangle uses", "triangles use"))


def _check_directions(document: Document, report: Report) -> None:
    zero = 128 if document.position_bounds is not None else 0
    if document.normals is None:
        report.warning("no-normals", "it has no normals, which lit materials need")
    else:
        none = int(np.count_nonzero((document.normals == zero).all(axis=1)))
        if none:
            report.warning("normals-without-direction", "{} no direction", counted(none, "normal has", "normals have"))
    if document.tangents is not None and zero:
        sides = document.tangents[:, 3]
        odd = int(np.count_nonzero((sides != 1) & (sides != 255)))
        if odd:
            number = counted(odd, "tangent does", "tangents do")
            report.warning("tangents-without-side", "{} not define the side of the bitangent", number)


def _step(document: Document) -> float:
    """Return the coarsest step of positions in metres, or 0 if they are stored as floats."""
    if document.position_bounds is None:
        return 0.0
    bounds = document.position_bounds.astype(np.float64).reshape(-1, 2)
    return float((bounds[:, 1] - bounds[:, 0]).max()) / 65535


def files_of(scene: Scene, options: WriteOptions) -> list[Scene]:
    """Return a scene for each file, with the file's name: one for each object, or one with all joined (``mesh_files``).

    Coarser levels of detail and physics shapes are skipped. The option ``large_meshes`` can split large meshes into
    several files. The returned scenes share ``scene.warnings``.

    Raises
    ------
    ExportError
        An object to be split has no faces, or NaN or infinite coordinates.
    """
    nodes = [node for node in scene.nodes if node.mesh is not None and node.lod == 0 and node.role is Role.RENDER]
    if options.mesh_files == "JOINED" and len(nodes) > 1:
        from ..passes.flatten import meshes_in_one_space  # slow to import, and readers do not need it
        from ..passes.join_meshes import join

        bare = [replace(node, mesh=node.mesh and _at_rest(node.mesh)) for node in nodes]
        nodes = [Node(scene.name, mesh=join(meshes_in_one_space(bare)), choices=all_choices(nodes))]
    parts = [part for node in nodes for part in _parts(scene, node, options)]
    return [replace(scene, name=node.name, nodes=[node], skeletons=[], clips=[]) for node in parts]


def _at_rest(mesh: Mesh) -> Mesh:
    """Return a mesh without the data that the file cannot hold, so that joining does not have to match it."""
    return replace(mesh, shape_keys=[], joint_indices=None, joint_weights=None, colors=[], custom=[], uvs=mesh.uvs[:1])


def _parts(scene: Scene, node: Node, options: WriteOptions) -> Iterator[Node]:
    """Yield a node for each file of an object."""
    whole = Node(node.name, mesh=node.mesh, choices=node.choices)
    if node.mesh is None or options.large_meshes != "SPLIT" or 3 * node.mesh.triangle_count <= MOST_SAFE:
        yield whole
        return
    from .document_builder import is_too_large, split_by_vertices  # as above

    report = scene.report.about(node.name)
    mesh = split_by_vertices(node.mesh, options, scene.tolerance, report)
    if not is_too_large(mesh):
        yield whole
        return
    cuts = list(triangle_runs(mesh.corner_point.reshape(-1, 3), MOST_SAFE, MOST_SAFE))
    numbers = np.repeat(np.arange(len(cuts), dtype=np.int32), [cut.stop - cut.start for cut in cuts])
    surface = mesh.surfaces[0] if len(mesh.surfaces) == 1 else Surface("")
    numbered = replace(mesh, material_index=numbers, materials=[""] * len(cuts), surfaces=[surface] * len(cuts))
    template = "{} and {:,} triangles are more than {:,}; split into {} files"
    vertices = counted(len(mesh.points), "vertex", "vertices")
    report.note("split-into-files", template, vertices, mesh.triangle_count, MOST_SAFE, len(cuts))
    for number in range(len(cuts)):
        yield replace(whole, name=f"{node.name}_{number + 1}", mesh=part_of_slots(numbered, [number]))


def to_scene(document: Document, name: str, options: ReadOptions) -> Scene:
    """Map a file to Blender's space.

    The scene has one node with one mesh, whose layers have one value for each point, in the order of the file. Its
    single material has no name; submeshes of a variant get one material each. Surfaces hold ``position_domain``
    and ``uv_domain``, and the layers of normals and tangents hold ``stored``, so that unchanged
    values are written with their imported bytes. Repairs are reported in ``scene.warnings``.
    """
    return SceneBuilder(document, name, options).build()


def from_scene(scene: Scene, options: WriteOptions) -> Document:
    """Map a scene with one mesh to a file of ``Variant.CURRENT``.

    ``scene.warnings`` reports what is left out or repaired.

    Raises
    ------
    ExportError
        No faces, more vertices or triangles than a file holds, or NaN or infinite coordinates.
    """
    from .document_builder import DocumentBuilder  # as above

    return DocumentBuilder(scene, options).build()


def facts(document: Document) -> dict[str, Any]:
    """Count the stored data; ``version`` is the variant, ``warnings`` lists oddities."""
    return {
        "version": str(document.variant),
        "nodes": 1,
        "vertices": len(document.positions),
        "triangles": len(document.triangles),
        "surfaces": 1 if document.submeshes is None else len(document.submeshes),
        "uv_layers": int(document.uvs is not None),
        "warnings": to_scene(document, document.name or "Mesh", ReadOptions()).warnings,
    }
