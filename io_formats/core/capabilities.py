"""Capabilities of a format, and the data of a scene that it loses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from .errors import ExportError
from .messages import Elements, Message, Named, Report, Text, counted, error, joined, listed, of_kind

if TYPE_CHECKING:
    from .scene import Clip, Layer, Mesh, Scene, ShapeKey


_COMMON_NAMES = 5
"""Number of joints with common names, such as "head" and "hip", that rigs of many programs share."""


ANY_NUMBER = 1_000_000
"""Limit for the number of layers or weights of a format that has no practical limit."""


@dataclass(eq=False, repr=False)
class Capabilities:
    """The data that a format can hold. All warnings about losses are derived from it."""

    meshes: bool = True
    """Whether files have meshes; False for formats of animations or skeletons alone."""
    uv_layers: int = 0
    color_layers: int = 0
    custom_layers: bool = False
    normals: bool = False
    tangents: str = "ALWAYS"
    """For which meshes the exporter computes tangents: ``ALWAYS``, ``NEVER``, or ``AUTO`` for those imported with
    tangents."""
    splits_vertices: bool = False
    """Whether a vertex has one normal, UV and colour, so that files split vertices along seams."""
    materials: bool = False
    project_textures: bool = False
    """Whether materials can have textures from the project folder of a file, or from the file itself."""
    ambient_occlusion: bool = False
    """Whether such materials can have a map of ambient occlusion."""
    node_hierarchy: bool = False
    shape_keys: bool = False
    skeletons: bool = False
    sliders: bool = False
    """Whether files hold positions of the sliders that shape a figure."""
    influences: int = 0
    """Maximum number of joint weights of a vertex; 0 for a format without weights."""
    node_clips: bool = False
    joint_clips: bool = False
    vertex_clips: bool = False
    keyed_clips: bool = False
    """Whether clips have keys at any times instead of frames, so that they end between two frames if need be."""
    levels_of_detail: bool = False
    surfaces: bool = False
    """Whether material slots with equal names stay separate, each with its own settings."""
    physics: bool = False
    lod_models: bool = False
    """Whether each object is a separate model that stores its transform beside its mesh, with levels of detail, physics
    shapes and a binding to a skeleton."""
    placement: bool = False
    """Whether a file places models of other files. Such a file can only be converted to formats that Blender writes
    itself."""
    opaque_colors: int = 0
    """Number of colour layers, counted from the first, that are stored without alpha."""
    gltf_materials: bool = False
    """Whether materials can be written to separate glTF files beside the file."""
    bakes_materials: bool = False
    """Whether exports bake the nodes of materials to pictures if files cannot hold them."""
    joins_objects: bool = False
    """Whether a file is a single mesh, into which all objects are joined."""
    joins_clips: bool = False
    """Whether a file has a single time line, which can hold only one animation."""
    longest_clip: float = 0.0
    """Length in seconds above which the target refuses an animation; 0 if there is no limit."""
    knows_joint: Callable[[str], bool] | None = None
    """Function that returns whether the target's built-in skeleton has a joint of this name. None if files define all
    joints."""

    @property
    def clips(self) -> bool:
        return self.node_clips or self.joint_clips or self.vertex_clips

    def knows_most(self, joints: Sequence[str]) -> bool:
        """Return whether the built-in skeleton of the target program has most of these joints."""
        knows = self.knows_joint
        return knows is not None and sum(map(knows, joints)) > max(len(joints) / 2, _COMMON_NAMES)


def length_refusal(name: str, seconds: float, longest: float) -> ExportError:
    """Return the error for an animation that is longer than the target accepts."""
    template = "'{}' is {:.1f} s long, and viewers refuse more than {:.0f} s; shorten it, or export a part of it"
    elements = Elements("milliseconds", "", (round(longest * 1000),))
    return ExportError.of(error("long-clip", template, name, seconds, longest, elements=elements))


_Dropped: TypeAlias = int | Sequence[str]
"""Names of dropped items, or their number if naming their owner is sufficient."""


def losses(scene: Scene, capabilities: Capabilities) -> list[Message]:
    """Return one message for each kind of data that a target with these capabilities drops."""
    lost: dict[str, list[tuple[str, _Dropped]]] = {}
    for kind, owner, dropped in _all_losses(scene, capabilities):
        lost.setdefault(kind, []).append((owner, dropped))
    report = Report()
    for kind, found in lost.items():
        _report_loss(kind, found, report)
    return report.messages


def _report_loss(kind: str, found: list[tuple[str, _Dropped]], report: Report) -> None:
    """Report a kind of loss, such as ``material 'M' of object 'Cube' not carried over``."""
    owners = dict.fromkeys(owner for owner, _ in found)
    counts = [dropped for _, dropped in found if isinstance(dropped, int)]
    named = [(name, owner) for owner, dropped in found if not isinstance(dropped, int) for name in dropped]
    if kind == _MATERIAL:  # a material that several objects share is counted once
        named = list({name: (name, owner) for name, owner in reversed(named)}.values())[::-1]
    code = f"{kind.replace(' ', '-')}-not-carried-over"
    count = len(named) or sum(counts)
    if len(named) == 1:
        ((name, owner),) = named
        more = len(owners) - 1
        also = Text(" and {} more", more) if more else ""
        report.loss(code, "{} '{}' of object '{}'{} not carried over", Text(kind), name, owner, also)
        return
    names = _some_named(named) if named else listed(of_kind("object", owners), 5)
    number = counted(count, kind, _PLURALS.get(kind, ""))
    report.loss(code, "{} not carried over: {}", number, names)


def _some_named(named: Sequence[tuple[str, str]], most: int = 5) -> Text:
    """Return a list of names with their owners, for example ``'Up', 'Down' of 'Body', 'Wide' of 'Hat'``."""
    owners: dict[str, list[str]] = {}
    for name, owner in named[:most]:
        owners.setdefault(owner, []).append(name)
    some = joined(Text("{} of '{}'", listed(names), owner) for owner, names in owners.items())
    return Text("{} and {:,} more", some, len(named) - most) if len(named) > most else some


def _all_losses(scene: Scene, capabilities: Capabilities) -> Iterator[tuple[str, str, _Dropped]]:
    """Yield kind, owner and items of each loss of each node, mesh, skeleton and clip."""
    from .scene import Role

    for node in scene.nodes:
        if node.parent >= 0 and not capabilities.node_hierarchy:
            yield "parent relation", node.name, 1
        if node.lod > 0 and not capabilities.levels_of_detail:
            yield "lower level of detail", node.name, 1
        if node.role is not Role.RENDER and not capabilities.physics:
            yield "physics shape", node.name, 1
        if node.mesh is not None:
            lost_names = _lost_names(node.mesh, capabilities)
            yield from ((kind, node.name, names) for kind, names in lost_names if names)
            bones = scene.skeletons[node.skeleton].joints if node.skeleton is not None else ()
            found = _mesh_losses(node.mesh, capabilities, moves=bool(bones))
            yield from ((kind, node.name, count) for kind, count in found if count)
    yield from ((kind, owner, 1) for kind, owner in _joined(scene, capabilities))
    if not capabilities.skeletons:
        yield from (("bone", each.name, len(each.joints)) for each in scene.skeletons if each.joints)
    if not capabilities.sliders:
        yield from (("body shape", each.name, 1) for each in scene.skeletons if each.slider_values is not None)
    for clip in scene.clips:
        owner = Named("animation", clip.name)
        yield from ((kind, owner, count) for kind, count in _clip_losses(clip, capabilities) if count)


_MATERIAL = "material"
_OVER = "vertex with too many weights"
_PLAYBACK = "set of playback settings"
_APART = "separate surface of the same name"
_PLURALS = {
    "colour layer's alpha": "colour layers' alpha",
    "lower level of detail": "lower levels of detail",
    _PLAYBACK: "sets of playback settings",
    _APART: "separate surfaces of the same name",
    "weighted mesh": "weighted meshes",
    _OVER: "vertices with too many weights",
}


def _joined(scene: Scene, capabilities: Capabilities) -> Iterator[tuple[str, str]]:
    """Yield kind and name of data that is merged because a file holds only one item of the kind."""
    from .scene import Role

    shown = (node for node in scene.nodes if node.lod == 0 and node.role is Role.RENDER)
    models = [node.name for node in shown if node.mesh is not None]
    if capabilities.joins_objects and len(models) > 1:
        yield from (("separate object", model) for model in models)
    if capabilities.joins_clips:
        yield from (("further animation", Named("animation", clip.name)) for clip in scene.clips[1:])


def _clip_losses(clip: Clip, capabilities: Capabilities) -> list[tuple[str, int]]:
    nodes = sum(track.skeleton is None for track in clip.transforms)
    return [
        ("animated node", 0 if capabilities.node_clips else nodes),
        ("animated bone", 0 if capabilities.joint_clips else len(clip.transforms) - nodes + len(clip.keys)),
        ("vertex animation", 0 if capabilities.vertex_clips else len(clip.vertices)),
        (_PLAYBACK, 0 if capabilities.keyed_clips or clip.playback is None else 1),
    ]


def _lost_names(mesh: Mesh, capabilities: Capabilities) -> list[tuple[str, list[str]]]:
    """Return the names of the dropped items of a mesh by kind of loss."""
    materials = dict.fromkeys(name for name in mesh.materials if name)
    return [
        ("UV layer", _names_of(mesh.uvs[capabilities.uv_layers :])),
        ("colour layer", _names_of(mesh.colors[capabilities.color_layers :])),
        ("custom layer", [] if capabilities.custom_layers else _names_of(mesh.custom)),
        (_MATERIAL, [] if capabilities.materials else of_kind("material", materials)),
        ("shape key", [] if capabilities.shape_keys else _names_of(mesh.shape_keys)),
    ]


def _names_of(layers: Sequence[Layer | ShapeKey]) -> list[str]:
    return of_kind("layer", (layer.name for layer in layers))


def _mesh_losses(mesh: Mesh, capabilities: Capabilities, *, moves: bool) -> list[tuple[str, int]]:
    """Return kind and number of what a mesh, which bones may move, loses without a name."""
    weights = mesh.joint_weights
    excess = 0
    if weights is not None and capabilities.influences and weights.shape[1] > capabilities.influences:
        excess = int(((weights > 0).sum(axis=1) > capabilities.influences).sum())
    return [
        ("colour layer's alpha", _with_alpha(mesh, min(capabilities.color_layers, capabilities.opaque_colors))),
        ("custom normal layer", 0 if capabilities.normals or mesh.normal is None else 1),
        ("weighted mesh", 1 if weights is not None and not (capabilities.influences and moves) else 0),
        (_OVER, excess),
        *(() if capabilities.surfaces else _surface_losses(mesh)),
    ]


def _with_alpha(mesh: Mesh, kept: int) -> int:
    """Count the layers with alpha among the first ``kept`` colour layers."""
    return sum(bool((layer.values[:, 3] < _opaque(layer)).any()) for layer in mesh.colors[:kept])


def _opaque(layer: Layer) -> float:
    return 255 if layer.values.dtype == "uint8" else 1.0


def _surface_losses(mesh: Mesh) -> list[tuple[str, int]]:
    """Count what is lost if surfaces become plain materials, since surfaces with the same name are merged."""
    return [
        (_APART, len(mesh.surfaces) - len({surface.name for surface in mesh.surfaces})),
        ("lightmap setting", sum(surface.has_lightmap for surface in mesh.surfaces)),
    ]
