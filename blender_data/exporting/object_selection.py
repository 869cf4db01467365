"""The objects of an export, warnings about those that are left out, and the number of triangles they will have."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import bpy
from mathutils import Matrix

from ...io_formats.core.errors import ExportError
from ...io_formats.core.messages import Kind, Message, Report, Text, joined, listed
from ..armature_modifiers import MESHABLE, armature_of

_PLACED = frozenset({"ARMATURE", "CAMERA", "LIGHT"})
"""Types of objects that become nodes in files that place models, in addition to those with a surface."""

_BODIES_LEFT_OUT = "bodies-left-out"

_SILENT = frozenset({"ARMATURE", "LATTICE"})
"""Types that are left out without a warning, since their effect on meshes is exported."""


@dataclass(frozen=True)
class Origin:
    """Origin of a file if it differs from the origin of the world: an object or a matrix."""

    obj: bpy.types.Object | None = None
    channels: str = "LOCATION"
    """Parts of the object's world transform: ``LOCATION``, ``LOCATION_ROTATION`` or ``ALL``."""
    matrix: Matrix | None = None
    """(4, 4) world matrix of the origin, used if there is no object."""


@dataclass(frozen=True)
class Source:
    """The objects to export: ``COLLECTION``, ``OBJECTS``, ``SELECTION`` or ``SCENE``, with collection or objects."""

    kind: str
    collection: bpy.types.Collection | None = None
    objects: tuple[bpy.types.Object, ...] = ()
    roots: tuple[bpy.types.Object, ...] = ()
    """If ``objects`` are meshes below selected armatures and empties, these armatures and empties."""
    origin: Origin | None = None
    """Origin of the file, for formats with a tree of nodes; None to use the origin of the world."""
    left_out: frozenset[bpy.types.Object] = frozenset()
    """Objects that do not belong to the model, such as one that only marks its origin."""


def automatic_source(context: bpy.types.Context, *, with_tree: bool) -> Source:
    """Return what to export if the user has not chosen it.

    These are the selected meshes. If only armatures or empties are selected, the meshes below them. If neither is
    selected, the active collection.

    Parameters
    ----------
    with_tree:
        Whether the format has a tree of objects. If so, empties are exported too, and a collection of which all objects
        are selected is exported as a collection, with its name and settings.
    """
    selected = [obj for obj in context.view_layer.objects.selected if obj.visible_get()]
    roots = [obj for obj in selected if obj.type in {"ARMATURE", "EMPTY"} and not has_surface(obj)]
    taken = [obj for obj in selected if has_surface(obj)]
    if taken and with_tree:
        taken = [obj for obj in selected if has_surface(obj) or obj.type == "EMPTY"]
        if _is_whole(taken, context.collection):
            return Source("COLLECTION", context.collection)
    if taken:
        return Source("OBJECTS", objects=tuple(taken))
    if roots:
        return Source("OBJECTS", objects=tuple(_below(context, roots, with_tree=with_tree)), roots=tuple(roots))
    if context.collection != context.scene.collection:
        return Source("COLLECTION", context.collection)
    return Source("SCENE")


def has_surface(obj: bpy.types.Object) -> bool:
    """Return whether an object has a surface, or shows instances that may have one."""
    return obj.type in MESHABLE or (obj.type == "EMPTY" and obj.instance_type != "NONE")


def _is_whole(taken: Iterable[bpy.types.Object], collection: bpy.types.Collection) -> bool:
    """Return whether these objects are all visible meshes and empties of a collection."""
    visible = {obj for obj in collection.all_objects if obj.type in {*MESHABLE, "EMPTY"} and obj.visible_get()}
    return visible == set(taken)


def _below(context: bpy.types.Context, roots: Iterable[bpy.types.Object], *, with_tree: bool) -> list[bpy.types.Object]:
    """Return the visible descendants of objects, and the visible meshes that they deform."""
    found = dict.fromkeys(roots)
    for root in tuple(found):
        found.update(dict.fromkeys(root.children_recursive))
    found.update(dict.fromkeys(obj for obj in context.scene.objects if armature_of(obj) in found))
    return [obj for obj in found if (has_surface(obj) or (with_tree and obj.type == "EMPTY")) and obj.visible_get()]


def select(
    context: bpy.types.Context,
    source: Source,
    *,
    use_hidden: bool,
    with_empties: bool = True,
    places_models: bool = False,
    report: Report | None = None,
) -> list[bpy.types.Object]:
    """Return the objects of an export, parents before children, and report the others.

    Objects that Blender does not evaluate (disabled in viewports, in excluded collections) are left out with a warning,
    since their modifiers would be missing. Hidden objects are exported with ``use_hidden``; coarser levels of detail
    are always exported with their finest level.

    Parameters
    ----------
    with_empties:
        Whether a file can hold empties; otherwise only those that show instances are chosen.
    places_models:
        Whether a file places models, so that armatures, cameras, lights and hidden nodes of imported files are chosen
        too, and the armatures of chosen meshes always.

    Raises
    ------
    ExportError
        Nothing is left to export.
    """
    candidates = candidates_of(context, source)
    enabled = set(enabled_objects(context.view_layer.layer_collection))
    coarser = set() if with_empties else _coarser(candidates, enabled, context, use_hidden=use_hidden)
    report = report or Report()
    chosen: list[bpy.types.Object] = []
    left_out: dict[Message, list[bpy.types.Object]] = {}
    for candidate in dict.fromkeys([*candidates, *sorted(coarser, key=lambda obj: obj.name)]):
        refusal = None
        if candidate not in coarser and not (places_models and is_hidden_node(candidate)):
            also = _PLACED if places_models else frozenset()
            refusal = refusal_of(
                context, candidate, enabled, use_hidden=use_hidden, with_empties=with_empties, also=also
            )
        if refusal is None:
            chosen.append(candidate)
        elif refusal:
            left_out.setdefault(refusal, []).append(candidate)
    # No messages for the originals of instances, which are often in an excluded collection.
    shown = set(shown_by(chosen))
    if places_models:
        rigs = dict.fromkeys(rig for obj in chosen if (rig := armature_of(obj)) is not None)
        chosen = list(dict.fromkeys([*chosen, *rigs]))
        shown |= rigs.keys()
    named = {message: [obj.name for obj in objects if obj not in shown] for message, objects in left_out.items()}
    report_left_out(named, source, report, is_all=not chosen)
    if not chosen:
        raise ExportError("There is nothing to export in {}{}", label_of(source), because(report.messages))
    if not with_empties:
        _report_missing_levels(chosen, candidates, report)
    return parents_first(chosen)


def report_left_out(left_out: Mapping[Message, Sequence[str]], source: Source, report: Report, *, is_all: bool) -> None:
    """Report the names of objects that are left out, by the reason.

    Bodies are reported only if the user chose them, or if ``is_all``: nothing is left to export.
    """
    is_chosen = source.kind in {"OBJECTS", "SELECTION"} and not source.roots
    for reason, names in left_out.items():
        if names and (reason.code != _BODIES_LEFT_OUT or is_chosen or is_all):
            report.about(listed(list(dict.fromkeys(names)))).add(reason)


def refusal_of(
    context: bpy.types.Context,
    candidate: bpy.types.Object,
    enabled: Container[bpy.types.Object],
    *,
    use_hidden: bool,
    with_empties: bool,
    also: Container[str] = (),
) -> Message | None:
    """Return the reason why an object is not exported.

    The result is None if it is exported, and an empty message if leaving it out is not reported.

    Parameters
    ----------
    enabled:
        The objects that :func:`enabled_objects` yields.
    also:
        Further types of objects that the file can hold.
    """
    if is_of_body(candidate):
        return loss(_BODIES_LEFT_OUT, "a body to fit clothes on, left out")
    if candidate.type == "EMPTY" and not with_empties and candidate.instance_type == "NONE":
        return loss("empties-left-out", "empties have no place in such a file")
    if candidate.type not in MESHABLE and candidate.type != "EMPTY" and candidate.type not in also:
        if candidate.type in _SILENT:
            return loss("", "")
        kind = candidate.type.lower().replace("_", " ")
        return loss("unsupported-objects", "{}s cannot be exported", Text(kind))
    if candidate not in enabled:
        return loss("disabled-objects", "disabled in viewports or in excluded collections, left out")
    if not use_hidden and not candidate.visible_get(view_layer=context.view_layer):
        return loss("hidden-objects", "hidden, left out")
    return None


def is_of_body(obj: bpy.types.Object) -> bool:
    """Return whether an object belongs to a body to fit clothes on, also as its level of detail or physics shape."""
    finest = obj.meshferry.lod_of or obj.meshferry.shape_of
    return bool(obj.meshferry.body or (finest is not None and finest.meshferry.body))


def has_only_bodies(objects: Iterable[bpy.types.Object]) -> bool:
    """Return whether all surfaces among objects belong to bodies to fit clothes on, and there are some."""
    surfaces = [obj for obj in objects if has_surface(obj)]
    return bool(surfaces) and all(map(is_of_body, surfaces))


def is_hidden_node(obj: bpy.types.Object) -> bool:
    """Return whether an object is a node that is hidden in its imported file, and that is still hidden in Blender."""
    return bool(obj.hide_viewport and obj.meshferry.given_hidden and obj.meshferry.node_key)


def loss(code: str, template: str, *values: object) -> Message:
    """Return the reason why objects are left out, as a message that lists them."""
    return Message(Kind.LOSS, "", Text(template, *values), code=code)


def select_armatures(
    context: bpy.types.Context, source: Source, *, use_hidden: bool, report: Report | None = None
) -> list[bpy.types.Object]:
    """Choose the armatures for an export of armatures: armatures in the source, and armatures that deform its meshes.

    Raises
    ------
    ExportError
        There is no armature.
    """
    candidates = candidates_of(context, source)
    enabled = set(enabled_objects(context.view_layer.layer_collection))
    chosen: dict[bpy.types.Object, None] = {}
    hidden: list[str] = []
    for candidate in candidates:
        found = candidate if candidate.type == "ARMATURE" else armature_of(candidate)
        if found is None or found in chosen:
            continue
        if found is not candidate and candidate not in enabled:
            # Blender does not evaluate this mesh; another mesh may be deformed by the same armature
            hidden.append(found.name)
            continue
        seen = found in enabled and (use_hidden or found.visible_get(view_layer=context.view_layer))
        if found is candidate and not seen and source.kind != "OBJECTS":
            hidden.append(found.name)
        else:
            chosen[found] = None
    hidden = list(dict.fromkeys(name for name in hidden if bpy.data.objects[name] not in chosen))
    report = report or Report()
    if hidden:
        report.loss("hidden-objects", "hidden or disabled, left out", item=listed(hidden))
    if not chosen:
        raise ExportError(
            "There is no armature in {}{}; select one, or a mesh that it deforms",
            label_of(source),
            because(report.messages),
        )
    return list(chosen)


def _coarser(
    candidates: Iterable[bpy.types.Object],
    enabled: Container[bpy.types.Object],
    context: bpy.types.Context,
    *,
    use_hidden: bool,
) -> set[bpy.types.Object]:
    """Return the coarser levels of detail whose finest objects are exported."""
    finest = {
        obj
        for obj in candidates
        if obj in enabled and (use_hidden or obj.visible_get(view_layer=context.view_layer)) and not is_of_body(obj)
    }
    return {
        obj
        for obj in context.scene.objects
        if obj.meshferry.lod_of in finest and obj.type in MESHABLE and obj in enabled
    }


def _report_missing_levels(
    chosen: Iterable[bpy.types.Object], candidates: Iterable[bpy.types.Object], report: Report
) -> None:
    """Report coarser levels of detail that are left out, unless another message already names them."""
    exported = set(chosen)
    named = exported.union(candidates)
    missing = [
        obj.name
        for obj in bpy.data.objects
        if obj.meshferry.lod_of in exported and obj not in named and obj.type in MESHABLE and obj.users_scene
    ]
    if missing:
        text = "levels of detail that are disabled in viewports, in excluded collections or in another scene, left out"
        report.loss("disabled-levels", text, item=listed(missing))


def candidates_of(context: bpy.types.Context, source: Source) -> list[bpy.types.Object]:
    """Return all objects of a source, of any type, including hidden ones."""
    if source.kind == "COLLECTION":
        if source.collection is None:
            raise ExportError("No collection was chosen to export")
        found = [obj for obj in dict.fromkeys(source.collection.all_objects) if obj not in source.left_out]
    elif source.kind == "SELECTION":
        found = list(context.view_layer.objects.selected)
    elif source.kind == "OBJECTS":
        found = list(dict.fromkeys(source.objects))
    else:
        found = list(context.scene.objects)
    return [obj for obj in found if not obj.meshferry.is_binding]  # Blender's Append links them to the scene


def shown_by(objects: Iterable[bpy.types.Object]) -> list[bpy.types.Object]:
    """Return the objects in the collections that are instanced by these objects, nested instances included."""
    found: dict[bpy.types.Object, None] = {}
    waiting = list(objects)
    while waiting:
        obj = waiting.pop()
        if obj.instance_type == "COLLECTION" and obj.instance_collection is not None:
            members = [member for member in obj.instance_collection.all_objects if member not in found]
            found.update(dict.fromkeys(members))
            waiting += members
    return list(found)


def is_disabled(obj: bpy.types.Object) -> bool:
    """Return whether an object is disabled in viewports, itself or by all of its collections."""
    return obj.hide_viewport or all(home.hide_viewport for home in obj.users_collection)


def source_objects(context: bpy.types.Context, source: Source) -> list[bpy.types.Object]:
    """Return the objects of a source with a surface, or its armatures if there are none."""
    candidates = candidates_of(context, source)
    shown = [obj for obj in candidates if obj.type in MESHABLE]
    return shown or [obj for obj in candidates if obj.type == "ARMATURE"]


def enabled_objects(layer: bpy.types.LayerCollection) -> Iterator[bpy.types.Object]:
    """Yield the objects that Blender evaluates as objects of the view layer, including hidden ones.

    The list of the dependency graph lacks hidden objects, and includes objects that only modifiers of others use.
    """
    if layer.collection.hide_viewport:
        return
    if not layer.exclude:
        yield from (obj for obj in layer.collection.objects if not obj.hide_viewport)
    for child in layer.children:
        yield from enabled_objects(child)


def because(notices: Iterable[str]) -> Text:
    """Return notices in brackets, as the reason in an error message; an empty text without notices."""
    reasons = joined(notices, "; ")
    return Text(" ({})", reasons) if reasons else Text("")


def label_of(source: Source) -> Text:
    """Return the name of a source for messages."""
    if source.collection is not None:
        return Text("collection '{}'", source.collection.name)
    if source.roots:
        return Text("what is below {}", listed([obj.name for obj in source.roots]))
    if source.kind == "OBJECTS":
        return listed([obj.name for obj in source.objects]) or Text("nothing")
    return Text("the selection") if source.kind == "SELECTION" else Text("the scene")


def parents_first(objects: Iterable[bpy.types.Object]) -> list[bpy.types.Object]:
    """Sort objects so that parents come before their children, keeping the order otherwise."""
    remaining = dict.fromkeys(objects)
    ordered: dict[bpy.types.Object, None] = {}

    for start in remaining:
        line = [start]
        while line[-1].parent is not None:
            line.append(line[-1].parent)
        for member in reversed(line):
            if member in remaining:
                ordered.setdefault(member)
    return list(ordered)


def with_ancestors(objects: Iterable[bpy.types.Object]) -> Iterable[bpy.types.Object]:
    """Return objects and all their parents."""
    found = dict.fromkeys(objects)
    for obj in tuple(found):
        while obj.parent is not None and obj.parent not in found:
            obj = obj.parent  # noqa: PLW2901
            found[obj] = None
    return found


def triangle_count(context: bpy.types.Context, obj: bpy.types.Object, *, use_modifiers: bool) -> int:
    """Return the number of triangles of a mesh object without its instances.

    It is 0 for other types of objects, and in edit mode.
    """
    if obj.type != "MESH" or obj.mode == "EDIT":
        return 0
    data = obj.evaluated_get(context.evaluated_depsgraph_get()).data if use_modifiers else obj.data
    return len(data.loops) - 2 * len(data.polygons)
