"""Bodies of the avatar, on which clothes are fitted: the choice of a body, Check Fit, Match Seam, findings of Check."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import bpy
import numpy as np
from bpy.props import BoolProperty, EnumProperty, StringProperty

from ....blender_data.armature_modifiers import armature_of
from ....blender_data.importing import import_options
from ....blender_data.importing.import_options import ImportOptions
from ....blender_data.mesh_data.element_selection import select_points
from ....blender_data.operator_calls import Selection
from ....blender_data.property_groups.translation_context import CONTEXT
from ....blender_data.rigging import as_shown, bodies, body_shapes, joint_weights, mesh_binding, seams
from ....io_formats.core.errors import MeshferryError
from ....io_formats.core.messages import Message, Text, counted, joined, listed, warning
from ....io_formats.core.scene import Scene
from ....io_formats.second_life.avatar import classic_body, sliders
from ....io_formats.second_life.avatar.armature_sliders import unfollowed_sliders
from ....io_formats.second_life.options import VIEWER_FOLDER
from ...layouts import IN_EDITABLE_SCENE, button, path_property, requires
from ...preferences import preferences, preferred_path
from ...reports import Messages, conclude, inform, refuse, warn
from ...selection import leave_edit_mode
from .avatar import HAS_AVATAR, chosen_avatar, is_avatar, known_bones, moved_by_file
from .binding_tools import Models, NeedsMeshes, Pose, names_of
from .body_shape import IS_SHAPEABLE

PRESENT = "PRESENT"
THIN = {34: 15, 105: 20, 649: 20, 652: 20, 676: 10, 678: 20, 685: 10, 753: 5, 795: 5, 879: 5}
HEAVY = {34: 70, 105: 80, 157: 60, 637: 60, 649: 60, 652: 70, 676: 75, 678: 80, 684: 30, 685: 70, 753: 50, 795: 75}
"""Positions of sliders by id; all others are at their defaults, and the sex is that of the avatar."""
SHAPES: Mapping[str, tuple[str, Mapping[int, int] | None]] = {
    PRESENT: ("Present Shape", None),
    "THIN": ("Thin", THIN),
    "DEFAULT": ("Default", {}),
    "HEAVY": ("Heavy", HEAVY),
}
_ALL = "ALL"


class OBJECT_OT_second_life_check_fit(bpy.types.Operator):
    """Find the vertices of clothes that lie inside of the avatar's active body."""

    bl_idname = "object.second_life_check_fit"
    bl_label = "Check Fit"
    bl_description = (
        "Report how many vertices of the selected clothes, or of all clothes of the avatar, are inside of its active "
        "body: at the present shape, and at a thin, the default and a heavy one. They are selected for edit mode"
    )
    bl_options = {"REGISTER", "UNDO"}
    poll = requires(HAS_AVATAR, IS_SHAPEABLE)

    select: EnumProperty(
        name="Select",
        description="At which shape the vertices are inside that are selected",
        items=((_ALL, "All", "At any of the shapes"), *((key, label, "") for key, (label, _) in SHAPES.items())),
        default=_ALL,
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Shape the avatar four times, count, and give it its shape back."""
        leave_edit_mode(context)
        avatar: Any = chosen_avatar(context)
        body = bodies.active_meshes(avatar, context.view_layer.objects)
        if not body:
            return refuse(self, "'{}' has no body; select a bound mesh and press Use as Body", avatar.name)
        clothes = clothes_of(context, avatar)
        if not clothes:
            return refuse(self, "No other mesh is bound to '{}'", avatar.name)
        try:
            found = inside_at_shapes(context, avatar, clothes, body)
        except MeshferryError as problem:
            return refuse(self, problem.sentence())
        for obj in clothes:
            flags = {key: at[obj] for key, at in found.items()}
            chosen = np.any(list(flags.values()), axis=0) if self.select == _ALL else flags[self.select]
            select_points(obj, np.flatnonzero(chosen).tolist())
            shares = [Text("{} {:.1%}", Text(SHAPES[key][0]), float(one.mean())) for key, one in flags.items()]
            say = warn if np.any(list(flags.values())) else inform
            say(self, "'{}': vertices inside of the body: {}", obj.name, joined(shares, ", "))
        return {"FINISHED"}


def clothes_of(context: bpy.types.Context, avatar: Any) -> list[Any]:
    """Return the selected meshes that an avatar deforms, except bodies, or all such visible meshes."""
    bound = [
        obj
        for obj in context.view_layer.objects
        if obj.type == "MESH" and not obj.meshferry.body and len(obj.data.vertices) and armature_of(obj) == avatar
    ]
    return [obj for obj in bound if obj.select_get()] or [obj for obj in bound if obj.visible_get()]


def inside_at_shapes(context: bpy.types.Context, avatar: Any, clothes: list[Any], body: list[Any]) -> dict[str, Any]:
    """Return which vertices of clothes are inside of the body, (V,) by object, for each key of :data:`SHAPES`."""
    restore = body_shapes.restorer(avatar)
    male = getattr(avatar, body_shapes.property_name(sliders.MALE))
    found = {}
    try:
        for key, (_label, percents) in SHAPES.items():
            if percents is not None:
                defaults = {slider.number: slider.default for slider in body_shapes.sliders()}
                body_shapes.set_percents(avatar, {**defaults, **percents, sliders.MALE: male})
            context.view_layer.update()
            found[key] = as_shown.vertices_inside(clothes, body)
    finally:
        restore()
        context.view_layer.update()
    return found


class OBJECT_OT_second_life_use_as_body(bpy.types.Operator):
    """Make the selected meshes the body on which clothes are fitted."""

    bl_idname = "object.second_life_use_as_body"
    bl_label = "Use as Body"
    bl_description = (
        "Make the selected meshes one body of the avatar, on which clothes are fitted: exports leave it out, clicks in "
        "the 3D view do not select it, and Transfer Weights takes the weights from it"
    )
    bl_options = {"REGISTER", "UNDO"}
    poll = requires(HAS_AVATAR)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Mark the meshes that the avatar deforms."""
        leave_edit_mode(context)
        avatar: Any = chosen_avatar(context)
        meshes = [obj for obj in context.view_layer.objects.selected if obj.type == "MESH"]
        bound = [obj for obj in meshes if armature_of(obj) == avatar]
        if not bound:
            return refuse(self, "Select a mesh that is bound to '{}'", avatar.name)
        linked = [obj.name for obj in bound if not obj.is_editable]
        if linked:
            return refuse(self, "{}: linked from another file; make it the body there", listed(linked, 3))
        bodies.make_body(avatar, bound, bodies.free_name(avatar, bound))
        context.view_layer.objects.active = avatar
        left = [obj.name for obj in meshes if obj not in bound]
        if left:
            warn(self, "{}: not bound to '{}', left out", listed(left, 3), avatar.name)
        inform(self, "{}: body of '{}'", listed([obj.name for obj in bound], 3), avatar.name)
        return {"FINISHED"}


class ForBody:
    """Mixin of operators for a body of the avatar."""

    bl_options = {"REGISTER", "UNDO"}
    poll = requires(HAS_AVATAR)

    body: StringProperty(name="Body", description="Name of the body", options={"SKIP_SAVE"})

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Find the body, and change it."""
        leave_edit_mode(context)
        avatar: Any = chosen_avatar(context)
        found = bodies.bodies_of(avatar, context.view_layer.objects).get(self.body)
        if not found:
            return refuse(self, "'{}' has no body '{}'", avatar.name, self.body)
        linked = [obj.name for obj in found if not obj.is_editable]
        if linked:
            return refuse(self, "{}: linked from another file; make a library override of it", listed(linked, 3))
        self.change(avatar, found)
        return {"FINISHED"}

    def change(self, avatar: Any, objects: Sequence[Any]) -> None:
        """Change the body."""
        raise NotImplementedError


class OBJECT_OT_second_life_activate_body(ForBody, bpy.types.Operator):
    """Choose the body on which clothes are fitted now."""

    bl_idname = "object.second_life_activate_body"
    bl_label = "Fit on This Body"
    bl_description = "Fit clothes on this body: show it, hide the avatar's other bodies, and take weights from it"

    def change(self, avatar: Any, objects: Sequence[Any]) -> None:
        """Make it the active one and show it alone."""
        avatar.meshferry.active_body = self.body
        for others in bodies.bodies_of(avatar, bpy.context.view_layer.objects).values():
            for obj in others:
                show(obj, is_shown=obj in objects)


class OBJECT_OT_second_life_show_body(ForBody, bpy.types.Operator):
    """Show or hide a body."""

    bl_idname = "object.second_life_show_body"
    bl_label = "Show or Hide Body"
    bl_description = "Show or hide the body"

    def change(self, avatar: Any, objects: Sequence[Any]) -> None:
        """Hide all of its meshes if one is visible."""
        is_shown = not bodies.is_shown(objects)
        for obj in objects:
            show(obj, is_shown=is_shown)


def show(obj: Any, *, is_shown: bool) -> None:
    """Show an object, also if it is disabled in viewports, or hide it."""
    if is_shown:
        obj.hide_viewport = False
    obj.hide_set(not is_shown)


class OBJECT_OT_second_life_release_body(ForBody, bpy.types.Operator):
    """Make a body ordinary meshes again."""

    bl_idname = "object.second_life_release_body"
    bl_label = "Release Body"
    bl_description = "Make the body an ordinary mesh again, which can be selected and exported"

    def change(self, avatar: Any, objects: Sequence[Any]) -> None:
        """Remove the marks."""
        bodies.release(objects)


class OBJECT_OT_second_life_load_body(bpy.types.Operator):
    """Load the classic avatar of an installed viewer."""

    bl_idname = "object.second_life_load_body"
    bl_label = "Load Body from Viewer"
    bl_description = (
        "Load the classic avatar from the folder 'character' of an installed viewer, with shape keys that follow the "
        "sliders. The folder is kept in the preferences"
    )
    bl_options = {"REGISTER", "UNDO"}
    poll = requires(IN_EDITABLE_SCENE)

    directory: path_property("Folder", "Folder 'character' of an installed viewer", "DIR_PATH", {"HIDDEN", "SKIP_SAVE"})
    filter_folder: BoolProperty(default=True, options={"HIDDEN", "SKIP_SAVE"})

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Take the folder of the preferences if the files are there; otherwise ask for it."""
        known = preferred_path(VIEWER_FOLDER)
        if known:
            try:
                classic_body.folder_in(Path(known))
            except MeshferryError:
                pass
            else:
                self.directory = known
                return self.execute(context)
        context.window_manager.fileselect_add(self)
        return {"RUNNING_MODAL"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Import the meshes onto the avatar, or with a new one."""
        leave_edit_mode(context)
        folder = bpy.path.abspath(self.directory) or preferred_path(VIEWER_FOLDER)
        done = add_body(self, context, folder, classic_body.NAME, lambda: classic_body.read(Path(folder)))
        if done == {"FINISHED"} and preferences() is not None:
            setattr(preferences(), VIEWER_FOLDER.preference, folder)
        return done


class OBJECT_OT_second_life_add_mannequin(bpy.types.Operator):
    """Add an abstract figure as the avatar's body."""

    bl_idname = "object.second_life_add_mannequin"
    bl_label = "Add Mannequin"
    bl_description = "Add an abstract figure as the avatar's body, on which clothes are fitted. It follows the sliders"
    bl_options = {"REGISTER", "UNDO"}
    poll = requires(IN_EDITABLE_SCENE)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Add the figure to the avatar, or with a new one."""
        leave_edit_mode(context)
        return add_body(self, context, "", classic_body.MANNEQUIN, classic_body.mannequin)


def add_body(
    operator: bpy.types.Operator, context: bpy.types.Context, path: str, name: str, read: Callable[[], Scene]
) -> set[str]:
    """Import meshes as a body of the chosen avatar, or of a new one; report the result, and return the operator's."""
    from ....blender_data.importing import importer

    avatar: Any = chosen_avatar(context)
    if avatar is not None and name in bodies.bodies_of(avatar, context.view_layer.objects):
        return refuse(operator, "'{}' has this body already", avatar.name)
    messages, parts = Messages(), []
    before = Selection(context)
    with messages.outcome(path, name):
        scene = read()
        made = importer.import_scene(
            import_options.ImportRequest(context, scene, ImportOptions.of({}), armature=avatar)
        )
        made.collection.meshferry.property_unset("from_file")  # conversions of .blend files prefer imported collections
        avatar = next(iter(made.armatures))
        meshes = [obj for obj in made.objects if obj.type == "MESH"]
        for obj, node in zip(meshes, scene.nodes, strict=True):
            obj.meshferry.body_part = node.name
        bodies.make_body(avatar, meshes, name)
        body_shapes.set_keys(avatar)
        avatar.select_set(True)
        context.view_layer.objects.active = avatar
        messages.warn(name, scene.warnings)
        parts = [counted(len(meshes), "mesh", "meshes")]
    if not messages.done:
        before.restore()
    return conclude(operator, messages, parts, "Loaded")


def draw_bodies(layout: Any, context: bpy.types.Context, _models: Any) -> None:
    """Draw the bodies of the avatar, and the buttons that add one."""
    avatar: Any = chosen_avatar(context)
    found = bodies.bodies_of(avatar, context.view_layer.objects)
    active = bodies.active_body(avatar, found)
    column = layout.column(align=True)
    for name, objects in found.items():
        row = column.row(align=True)
        icon = "RADIOBUT_ON" if name == active else "RADIOBUT_OFF"
        chosen = row.operator(OBJECT_OT_second_life_activate_body.bl_idname, text=name, translate=False, icon=icon)
        eye = "HIDE_OFF" if bodies.is_shown(objects) else "HIDE_ON"
        shown = row.operator(OBJECT_OT_second_life_show_body.bl_idname, text="", icon=eye)
        released = row.operator(OBJECT_OT_second_life_release_body.bl_idname, text="", icon="X")
        for operator in (chosen, shown, released):
            operator.body = name
    if not found:
        column.label(text="No body to fit clothes on", text_ctxt=CONTEXT, icon="INFO")
    button(column, OBJECT_OT_second_life_use_as_body, text="Use as Body", icon="MOD_CLOTH")
    if classic_body.MANNEQUIN not in found:
        button(column, OBJECT_OT_second_life_add_mannequin, text="Add Mannequin", icon="ARMATURE_DATA")
    if classic_body.NAME not in found:
        button(column, OBJECT_OT_second_life_load_body, text="Load Body from Viewer…", icon="OUTLINER_OB_ARMATURE")
    if found:
        button(layout, OBJECT_OT_second_life_check_fit, text="Check Fit", icon="CHECKMARK")


_LEAST = 0.05
"""Weight of a vertex from which on a body counts as weighted for a joint."""
_MOST = 6
"""Number of sliders that a message names."""


def shape_findings(objects: Iterable[Any], others: Iterable[Any]) -> Iterator[Message]:
    """Yield a warning for each mesh on which shape sliders have no effect.

    Compared are meshes bound to an avatar with a body (*Use as Body*), by the rule of
    :func:`.followed_sliders.unfollowed`, and meshes with *Lock Scale* and joint positions. ``others`` are the objects
    among which the bodies are found.
    """
    candidates = list(others)
    of_bodies: dict[Any, set[str]] = {}
    for obj in objects:
        avatar = armature_of(obj) if obj.type == "MESH" and not obj.meshferry.body else None
        if avatar is None or not is_avatar(avatar):
            continue
        if avatar not in of_bodies:
            of_bodies[avatar] = body_joints(avatar, candidates)
        yield from findings_of(obj, avatar, of_bodies[avatar])


def findings_of(obj: Any, avatar: Any, body: set[str]) -> Iterator[Message]:
    """Yield the warnings about one mesh; ``body`` are the joints with weights of the avatar's body."""
    shares = weight_shares(obj, known_bones(avatar))
    found = unfollowed_sliders(shares, body)
    if found.volumes and found.sliders:
        yield warning(
            "does-not-follow-shape",
            "it has no weights for {}, which the body has, so that {} no effect on it: {}. Transfer the weights of the "
            "body, or use Fitted Mesh",
            listed(list(found.volumes), _MOST),
            counted(len(found.sliders), "shape slider has", "shape sliders have"),
            listed(list(found.sliders), _MOST),
            item=obj.name,
        )
    locked = moved_by_file(obj) if obj.meshferry.skin.lock_scale else set()
    found = unfollowed_sliders(shares, (), locked)
    if locked and found.sliders:
        yield warning(
            "scale-locked",
            "it locks the scale of {}, so that {} no effect: {}",
            counted(len(locked), "joint"),
            counted(len(found.sliders), "shape slider has", "shape sliders have"),
            listed(list(found.sliders), _MOST),
            item=obj.name,
        )


def weight_shares(obj: Any, joint_of: dict[str, str]) -> dict[str, float]:
    """Return the share of a mesh's weights for each joint with weights."""
    weights = joint_weights.read(obj, set(joint_of))
    totals = weights.values.sum(axis=0, dtype=np.float64)
    whole = max(float(totals.sum()), 1e-12)
    return {joint_of[name]: total / whole for name, total in zip(weights.joints, totals.tolist(), strict=True) if total}


def body_joints(avatar: Any, objects: Iterable[Any]) -> set[str]:
    """Return the joints with weights of an avatar's active body; none without a body."""
    joint_of, joints = known_bones(avatar), set()
    for obj in bodies.active_meshes(avatar, objects):
        weights = joint_weights.read(obj, set(joint_of))
        strong = (weights.values >= _LEAST).any(axis=0)
        joints |= {joint_of[name] for name, used in zip(weights.joints, strong.tolist(), strict=True) if used}
    return joints


class OBJECT_OT_second_life_match_seam(NeedsMeshes, bpy.types.Operator):
    """Let the borders of parts that meet agree."""

    bl_idname = "object.second_life_match_seam"
    bl_label = "Match Seam"
    bl_description = (
        "Give border vertices of the selected meshes that are within 1 mm of a border of the active body, or of the "
        "mesh selected before, its place, weights and normal, so that no gap opens in any pose or shape"
    )

    def change(self, context: bpy.types.Context, models: Models, avatar: Any, pose: Pose) -> Text:
        """Match the finest meshes, one after the other."""
        items = [model[0] for model in models]
        mesh_binding.require_bindable(items, avatar)
        joints = set(known_bones(avatar))
        found = seams.Seams(sorted(joints))
        for obj in bodies.active_meshes(avatar, context.view_layer.objects):
            found.add(obj)
        made = [obj.name for obj in items if changes_border(context, obj)]
        if made:
            raise MeshferryError("{}: modifiers change the border; apply them first", listed(made))
        count = 0
        for obj in items:
            count += found.taken_over(obj, joints)
            found.add(obj)
        return Text("{}: {} matched", names_of(models), counted(count, "border vertex", "border vertices"))


def changes_border(context: bpy.types.Context, obj: Any) -> bool:
    """Return whether modifiers add, remove or move vertices of a mesh object, besides armatures."""
    others = [modifier for modifier in obj.modifiers if modifier.type != "ARMATURE" and modifier.show_viewport]
    if not others:
        return False
    seen = obj.evaluated_get(context.evaluated_depsgraph_get()).data
    return len(seen.vertices) != len(obj.data.vertices) or not np.array_equal(
        seams.border_of(seen), seams.border_of(obj.data)
    )
