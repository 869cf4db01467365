"""Bind meshes to the avatar: automatic weights, weights of another mesh, fitted mesh, cleaning."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
from bpy.props import BoolProperty, FloatProperty, StringProperty

from ....blender_data import scene_state
from ....blender_data.armature_modifiers import armature_of
from ....blender_data.exporting.models.model_objects import ModelIndex
from ....blender_data.property_groups.translation_context import CONTEXT
from ....blender_data.rigging import as_shown, bodies, bones, joint_weights, mesh_binding, rig_copies, shown_bindings
from ....blender_data.rigging.joint_weights import WeightedSurface, mirror_surface, surface_of
from ....io_formats.core.errors import MeshferryError
from ....io_formats.core.messages import Text, counted, joined, listed
from ....io_formats.second_life.avatar import joints
from ....io_formats.second_life.models.faces import MOST_INFLUENCES
from ...findings.mesh_tools import apply_scale, has_even_scale, scale_refusal
from ...layouts import button, property_column, requires
from ...reports import inform, refuse, warn
from ...selection import leave_edit_mode
from .avatar import HAS_AVATAR, bone_lines, chosen_avatar, known_bones

if TYPE_CHECKING:
    from ....blender_data.rigging import volume_weights

Models = list[list[Any]]
Pose = Mapping[str, Any]
"""Transforms of bones from the rest to the pose, (4, 4) in world space; empty for work on the rest."""


def chosen_meshes(context: bpy.types.Context) -> Models:
    """Return the selected models: for each its finest mesh object, followed by its coarser levels of detail."""
    index = ModelIndex(context.scene.objects)
    active = context.view_layer.objects.active
    selected = [obj for obj in context.view_layer.objects.selected if obj.type == "MESH"]
    finest = dict.fromkeys(index.finest_of(obj) for obj in sorted(selected, key=lambda obj: obj != active))
    models = [index.model(obj) for obj in finest if obj.type == "MESH" and obj.meshferry.role == "RENDER"]
    return [
        [model.finest, *(obj for _level, obj in sorted(model.levels.items()) if obj.type == "MESH")] for model in models
    ]


def names_of(models: Models) -> Text:
    """Return the first names of models for a report."""
    return listed([model[0].name for model in models], 3)


class KeepsForm:
    """Mixin of operators that can keep the form in which meshes are shown."""

    use_as_shown: BoolProperty(
        name="As Shown",
        description="Keep the form in which the meshes are shown on the shaped and posed avatar, and change their rest "
        "form instead. Otherwise work on the rest pose of the avatar",
        default=True,
    )


class NeedsMeshes:
    """Mixin of operators that change the weights of the selected meshes for an avatar."""

    bl_options = {"REGISTER", "UNDO"}

    poll = requires(
        (
            lambda context: any(obj.type == "MESH" for obj in context.view_layer.objects.selected),
            "Select a mesh object",
        ),
        HAS_AVATAR,
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Change the weights of the selected meshes; report an error before anything is changed."""
        leave_edit_mode(context)
        avatar, models = chosen_avatar(context), chosen_meshes(context)
        try:
            if avatar is None or not models:
                raise MeshferryError("Select a mesh object that is neither a level of detail nor physics")
            context.view_layer.update()
            pose = as_shown.bone_transforms(avatar) if getattr(self, "use_as_shown", False) else {}
            is_other = any(shown_bindings.matrices(obj) for model in models for obj in model)
            pose = pose if is_other or as_shown.is_moved(pose) else {}
            settings = [] if pose else [(avatar.data, "pose_position", "REST")]
            with scene_state.changed(context, settings):
                scene_state.update_worlds(context, [avatar, *(obj for model in models for obj in model)])
                text = self.change(context, models, avatar, pose)
        except MeshferryError as problem:
            return refuse(self, problem.sentence())
        inform(self, text)
        return {"FINISHED"}

    def change(self, context: bpy.types.Context, models: Models, avatar: Any, pose: Pose) -> Text:
        """Change the weights; return the report.

        ``pose`` has the transforms of bones with which the meshes are shown; it is empty for work on the rest.
        """
        raise NotImplementedError

    def bind(self, models: Models, avatar: Any, pose: Pose, find: Callable[[Models], mesh_binding.Bindings]) -> Text:
        """Bind the meshes of models with the weights that are found for them; return the report."""
        items = [obj for model in models for obj in model]
        mesh_binding.require_bindable(items, avatar)
        with as_shown.shown_copies(items if pose else ()) as copies:
            found = find([[copies.get(obj, obj) for obj in model] for model in models])
            bindings = {obj: found[copies.get(obj, obj)] for obj in items}
        scaled, unscaled = apply_scales(models)
        scene_state.update_worlds(bpy.context, items)
        used = sorted({name for weights in bindings.values() for name in weights.used})
        with as_shown.kept_form(bpy.context, items, avatar if pose else None) as said:
            released = mesh_binding.apply(bindings, avatar, set(known_bones(avatar)))
            if not getattr(self, "vertex_group", ""):
                for obj in items:
                    obj.data.meshferry.property_unset("volume_factors")
            bones.switch_on(avatar, used)
        parts = [Text("{}: bound to {} of '{}'", names_of(models), counted(len(used), "bone"), avatar.name)]
        without = sum(weights.unweighted for weights in bindings.values())
        if without:
            parts.append(Text("{} no weights", counted(without, "vertex has", "vertices have")))
        if released:
            objects = counted(released, "object was", "objects were")
            parts.append(Text("{} bound to another armature before", objects))
        if scaled:
            parts.append(Text("uneven scale applied: {}", listed(scaled, 3)))
        if unscaled:
            names = listed(unscaled, 3)
            parts.append(Text("uneven scale, to be applied by hand (Object > Apply > Scale): {}", names))
        return joined([*parts, *said], "; ")


class OBJECT_OT_second_life_bind(KeepsForm, NeedsMeshes, bpy.types.Operator):
    """Bind the selected meshes to the avatar with automatic weights."""

    bl_idname = "object.second_life_bind"
    bl_label = "Bind to Avatar"
    bl_description = (
        "Bind the selected meshes and their levels of detail to the avatar with automatic weights for the bones with "
        "Deform on, except for collision volumes. Layers and small parts, such as linings and buttons, follow the "
        "surface below them"
    )

    def change(self, context: bpy.types.Context, models: Models, avatar: Any, pose: Pose) -> Text:
        """Replace all weights for the avatar's joints."""
        chosen = weighted_bones(avatar)
        if not chosen:
            raise MeshferryError(
                "{}: Deform is off for all bones; set Bones for Automatic Weights to Body", avatar.name
            )
        lines = bone_lines(avatar)
        bones = {name: rig_copies.moved(lines[name], pose.get(name, np.identity(4))) for name in chosen}
        return self.bind(
            models, avatar, pose, lambda seen: mesh_binding.automatic(context, seen, bones, MOST_INFLUENCES)
        )


class OBJECT_OT_second_life_transfer_weights(KeepsForm, NeedsMeshes, bpy.types.Operator):
    """Give the selected meshes the weights of another one, such as a body."""

    bl_idname = "object.second_life_transfer_weights"
    bl_label = "Transfer Weights"
    bl_description = (
        "Bind the selected meshes to the avatar with the weights of the nearest points of another mesh, such as a "
        "body or the mesh of a dev kit"
    )

    source: StringProperty(name="Source", description="Mesh object whose weights are transferred")
    use_mirror: BoolProperty(
        name="Mirror",
        description="Take the weights from the other side of the source, with left and right bones exchanged",
        default=False,
    )
    vertex_group: StringProperty(
        name="Vertex Group",
        description="Change only the weights of vertices in this group, as far as its weights say; empty for all",
    )

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Ask for the source."""
        if not self.source:
            self.source = next(iter(sources(context)), "")
        manager: Any = context.window_manager
        return manager.invoke_props_dialog(self, title="Transfer Weights", confirm_text="Transfer")

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the fields."""
        layout = property_column(self.layout)
        layout.prop_search(self, "source", context.scene, "objects", icon="MESH_DATA")
        layout.prop(self, "use_mirror")
        layout.prop(self, "use_as_shown")
        obj = context.object
        if obj is not None and obj.type == "MESH":
            layout.prop_search(self, "vertex_group", obj, "vertex_groups")
        else:
            layout.prop(self, "vertex_group")

    def change(self, context: bpy.types.Context, models: Models, avatar: Any, pose: Pose) -> Text:
        """Replace the weights for the avatar's joints, inside the vertex group if there is one."""
        source = context.scene.objects.get(self.source)
        if source is None or source.type != "MESH":
            raise MeshferryError("Choose the mesh whose weights are transferred")
        parts = bodies.whole_body(source)
        models = [model for model in models if not set(model).intersection(parts)]
        if not models:
            raise MeshferryError("Select the meshes that get the weights, besides the source")
        if self.vertex_group and self.vertex_group in known_bones(avatar):
            raise MeshferryError("'{}' has the weights of a bone; choose another vertex group", self.vertex_group)
        if self.vertex_group:
            for obj in (obj for model in models for obj in model):
                group_weights(obj, self.vertex_group)
        scene_state.update_worlds(context, parts)
        form = surface_of(parts, as_shown.shown_points) if pose else surface_of(parts)
        surface = self.surface(source, avatar, form)
        text = self.bind(models, avatar, pose, lambda seen: self.found(seen, surface, avatar, faces_alike=bool(pose)))
        scaled = [part.name for part in parts if pose and shown_bindings.has_scales(part)]
        if scaled:
            template = (
                "{}: its file binds it with bone scales of a shape; at other shapes, the clothes move away from it by "
                "some millimetres"
            )
            warn(self, template, listed(scaled, 3))
        return text

    def surface(self, source: Any, avatar: Any, form: WeightedSurface) -> WeightedSurface:
        """Return the surface of the source, or of the body that it belongs to, without points that have no weights."""
        joints = list(known_bones(avatar))
        weights = np.concatenate([weights_of(part, avatar, joints) for part in bodies.whole_body(source)])
        surface = replace(form, joints=tuple(joints), weights=weights)
        surface = surface.without(~(surface.weights > 0).any(axis=1))
        if not len(surface.triangles):
            raise MeshferryError("{}: it has no weights for the bones of '{}'", source.name, avatar.name)
        if not self.use_mirror:
            return surface
        matrix = np.array(avatar.matrix_world, np.float64)
        return mirror_surface(surface, *symmetry(avatar, matrix), other_sides(known_bones(avatar)))

    def found(
        self, models: Models, surface: WeightedSurface, avatar: Any, *, faces_alike: bool
    ) -> mesh_binding.Bindings:
        """Return the new weights of the objects of models."""
        items = [obj for model in models for obj in model]
        bindings = mesh_binding.nearest(items, surface, MOST_INFLUENCES, faces_alike=faces_alike)
        if not self.vertex_group:
            return bindings
        joints = set(known_bones(avatar))
        return {
            obj: joint_weights.mixed(
                joint_weights.read(obj, joints), new, group_weights(obj, self.vertex_group), MOST_INFLUENCES
            )
            for obj, new in bindings.items()
        }


def factor_property(name: str, description: str, default: float) -> Any:
    """Return a property for a share between 0 and 1."""
    return FloatProperty(name=name, description=description, min=0.0, max=1.0, default=default, subtype="FACTOR")


def property_of(volume: str) -> str:
    """Return the name of the property with the factor of a collision volume and of its counterpart."""
    return "factor_" + re.sub("^(LEFT|RIGHT|L|R)_", "", volume).lower()


FACTORS = {
    property_of(name): property_of(name).removeprefix("factor_").replace("_", " ").title()
    for name, joint in joints.table().items()
    if joint.is_collision_volume
}
"""Labels of the factors for collision volumes by their properties."""


def kept_factors(obj: Any) -> dict[str, float]:
    """Return the factors that a mesh got last, by their properties; empty for none."""
    try:
        kept = json.loads(obj.data.meshferry.volume_factors or "{}")
        return {name: float(kept[name]) for name in ("factor", *FACTORS) if name in kept}
    except (ValueError, TypeError):
        return {}


def first_factors(obj: Any, avatar: Any) -> dict[str, float]:
    """Return the factors that change nothing: those that a mesh got last, or 1 if it has weights for volumes."""
    volumes = {name for family in volume_families(avatar) for name in family.volumes}
    kept = kept_factors(obj)
    return kept or ({"factor": 1.0} if volumes.intersection(bones.weighted_groups(obj)) else {})


def by_volume(families: "list[volume_weights.Family]", factors: Mapping[str, float]) -> dict[str, float]:
    """Return the product of the factor of all volumes and its own for each volume; empty without factors."""
    volumes = [name for family in families for name in family.volumes] if factors else []
    return {name: factors.get("factor", 1.0) * factors.get(property_of(name), 1.0) for name in volumes}


class OBJECT_OT_second_life_fitted_mesh(KeepsForm, NeedsMeshes, bpy.types.Operator):
    """Move weights between bones and their collision volumes."""

    bl_idname = "object.second_life_fitted_mesh"
    bl_label = "Fitted Mesh"
    bl_description = (
        "Move the weights of bones to their collision volumes, so that the selected meshes follow the body shape "
        "sliders, or back. Volumes that have weights, as in kits, keep their distribution"
    )
    bl_options = {"REGISTER", "UNDO", "PRESET"}

    __annotations__ = {
        "factor": factor_property(
            "Factor",
            "Share of the weight of a bone that its collision volumes get; 0 moves all weights back to bones",
            0.5,
        ),
        **{
            name: factor_property(label, "Part of the factor for these collision volumes, of both sides", 1.0)
            for name, label in FACTORS.items()
        },
    }

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Begin with the factors that the active mesh got last; the weights of a kit stay as they are."""
        models, avatar = chosen_meshes(context), chosen_avatar(context)
        if models and avatar is not None and not any(map(self.properties.is_property_set, ("factor", *FACTORS))):
            for name, value in first_factors(models[0][0], avatar).items():
                setattr(self, name, value)
        return self.execute(context)

    def draw(self, _context: bpy.types.Context) -> None:
        """Draw the factor, and those of the volumes."""
        layout = property_column(self.layout)
        layout.prop(self, "factor")
        layout.prop(self, "use_as_shown")
        header, body = layout.panel("SECOND_LIFE_factors", default_closed=True)
        header.label(text="By Volume", text_ctxt=CONTEXT)
        if body is not None:
            column = body.column(align=True)
            for name in FACTORS:
                column.prop(self, name)

    def change(self, context: bpy.types.Context, models: Models, avatar: Any, pose: Pose) -> Text:
        """Split the weights of each bone with volumes; the sum of a bone and its volumes stays the same."""
        from ....blender_data.rigging import volume_weights

        families = volume_families(avatar)
        if not families:
            raise MeshferryError(
                "{}: it has no collision volumes; add an avatar with them, and bind the meshes to that one", avatar.name
            )
        items = [obj for model in models for obj in model]
        mesh_binding.require_bindable(items, avatar)
        joints = set(known_bones(avatar))
        chosen = {name: getattr(self, name) for name in ("factor", *FACTORS)}
        bindings = {
            obj: volume_weights.split(
                obj,
                families,
                joints,
                volume_weights.Factors(by_volume(families, chosen), by_volume(families, kept_factors(obj))),
                MOST_INFLUENCES,
            )
            for obj in items
        }
        used = sorted({name for weights in bindings.values() for name in weights.used})
        if not used:
            raise MeshferryError("{}: it has no weights for '{}'; use Bind to Avatar first", items[0].name, avatar.name)
        with as_shown.kept_form(context, items, avatar if pose else None) as said:
            for obj, weights in bindings.items():
                joint_weights.write(obj, weights, joints)
                obj.data.meshferry.volume_factors = json.dumps(chosen)
            bones.switch_on(avatar, used)
        volumes = {name for family in families for name in family.volumes}
        number = counted(len(volumes.intersection(used)), "collision volume")
        return joined([Text("{}: weights for {}", names_of(models), number), *said], "; ")


class OBJECT_OT_second_life_clean_weights(KeepsForm, NeedsMeshes, bpy.types.Operator):
    """Clean the weights of the selected meshes."""

    bl_idname = "object.second_life_clean_weights"
    bl_label = "Clean Weights"
    bl_description = (
        "Keep the four largest weights of each vertex, remove those below the threshold, let the sum of the others be "
        "1, and remove vertex groups of bones without weights"
    )

    threshold: FloatProperty(
        name="Threshold",
        description="Share of a vertex below which a weight is removed",
        min=0.0,
        max=0.25,
        default=joint_weights.LEAST_WEIGHT,
        precision=3,
    )

    def change(self, context: bpy.types.Context, models: Models, avatar: Any, pose: Pose) -> Text:
        """Clean the weights for the avatar's joints."""
        joints = set(known_bones(avatar))
        items = [obj for model in models for obj in model]
        mesh_binding.require_bindable(items, avatar)
        vertices = groups = 0
        with as_shown.kept_form(context, items, avatar if pose else None) as said:
            for obj in items:
                before = joint_weights.read(obj, joints)
                values = joint_weights.limited(before.values, MOST_INFLUENCES, self.threshold)
                vertices += int(np.count_nonzero(np.abs(values - before.values).max(axis=1, initial=0.0) > 1e-4))
                after = replace(before, values=values)
                groups += len(before.joints) - len(after.used)
                joint_weights.write(obj, after, joints)
                if pose:
                    bones.switch_on(avatar, after.used)
        changed = Text(
            "{} changed, {} removed", counted(vertices, "vertex", "vertices"), counted(groups, "vertex group")
        )
        return joined([Text("{}: {}", names_of(models), changed), *said], "; ")


def apply_scales(models: Models) -> tuple[list[str], list[str]]:
    """Apply uneven scales of models and their levels, which the check warns about.

    Return the names of the changed models, and of those whose scale cannot be applied safely. Objects as imported stay
    unchanged, since their scale is the size of the unit cube in the file.
    """
    uneven = [
        model
        for model in models
        if any(
            not has_even_scale(obj.scale) and not any(kept.has_domains for kept in obj.meshferry.surfaces)
            for obj in model
        )
    ]
    safe = [model for model in uneven if not any(map(scale_refusal, model))]
    for obj in (obj for model in safe for obj in model):
        apply_scale(obj)
    return [model[0].name for model in safe], [model[0].name for model in uneven if model not in safe]


def weighted_bones(avatar: Any) -> list[str]:
    """Return the bones that take part in automatic weights.

    Fitted meshes switch Deform on for collision volumes, which would then take half of the next garment's weights.
    """
    table = joints.table()
    return [
        name
        for name, joint in known_bones(avatar).items()
        if avatar.data.bones[name].use_deform and table[joint].is_bone
    ]


def sources(context: bpy.types.Context) -> list[str]:
    """Return the names of visible meshes that are bound to an avatar and not selected.

    The active body of the avatar is first, also if it is hidden; the others are sorted by their number of vertices.
    """
    avatar = chosen_avatar(context)
    active = bodies.active_meshes(avatar, context.view_layer.objects) if avatar is not None else []
    found = [
        obj
        for obj in context.view_layer.objects
        if obj.type == "MESH" and not obj.select_get() and obj.visible_get() and armature_of(obj) is not None
    ]
    ordered = [*active, *sorted(found, key=lambda obj: -len(obj.data.vertices))]
    return [obj.name for obj in dict.fromkeys(ordered)]


def weights_of(source: Any, avatar: Any, joints: list[str]) -> Any:
    """Return the weights of a mesh for bones of the avatar, (V, J)."""
    bone_of = source_bones(source, avatar)
    read = joint_weights.read(source, set(bone_of))
    return read.renamed([bone_of[name] for name in read.joints]).for_joints(joints)


def source_bones(source: Any, avatar: Any) -> dict[str, str]:
    """Return for each vertex group of a source the bone of the avatar that gets its weights.

    Groups may be called by another name of a joint. Weights for a joint that the avatar's armature lacks, such as a
    collision volume, go to the next one above it.
    """
    bone_of = {joint: name for name, joint in known_bones(avatar).items()}
    found: dict[str, str] = {}
    for group in source.vertex_groups:
        joint = joints.canonical(group.name)
        above = joints.ancestors(joint) if joint is not None else []
        bone = next((bone_of[name] for name in above if name in bone_of), None)
        if bone is not None:
            found[group.name] = bone
    return found


def symmetry(avatar: Any, matrix: Any) -> tuple[Any, Any]:
    """Return a point and the normal of the avatar's plane of symmetry in world space."""
    heads = {joint: np.array(avatar.data.bones[name].head_local) for name, joint in known_bones(avatar).items()}
    left = joints.left_of(heads)
    if left is None:
        raise MeshferryError("{}: it has no left and right bones to mirror", avatar.name)
    across = np.linalg.inv(matrix[:3, :3]).T @ left
    middle = [head for joint, head in heads.items() if joints.other_side(joint) is None]
    centre = np.mean(middle or list(heads.values()), axis=0)
    return matrix[:3, :3] @ centre + matrix[:3, 3], across / np.linalg.norm(across)


def other_sides(known: dict[str, str]) -> list[int]:
    """Return for each bone the index of its counterpart on the other side of the avatar, or its own index."""
    number = {joint: place for place, joint in enumerate(known.values())}
    return [number.get(joints.other_side(joint) or joint, place) for joint, place in number.items()]


def group_weights(obj: Any, name: str) -> Any:
    """Return the weights of vertices in a vertex group, (V,).

    Raises
    ------
    MeshferryError
        The object has no such group.
    """
    found = joint_weights.read(obj, {name})
    if not found.joints:
        raise MeshferryError("{}: it has no vertex group '{}'", obj.name, name)
    return found.values[:, 0]


def volume_families(avatar: Any) -> "list[volume_weights.Family]":
    """Return the bones of an avatar that have collision volumes."""
    from ....blender_data.rigging import volume_weights

    table = joints.table()
    bone_of = {joint: name for name, joint in known_bones(avatar).items()}
    found: dict[str, dict[str, float]] = {}
    for joint, name in bone_of.items():
        row = table[joint]
        if row.is_collision_volume and row.parent in bone_of:
            found.setdefault(bone_of[row.parent], {})[name] = float(np.prod(row.scale) ** (1 / 3))
    lines = bone_lines(avatar)
    return [
        volume_weights.Family(bone, tuple(sizes), tuple(sizes.values()), np.array([lines[name] for name in sizes]))
        for bone, sizes in found.items()
    ]


def draw_binding(layout: Any) -> None:
    """Draw the buttons."""
    column = layout.column(align=True)
    button(column, OBJECT_OT_second_life_bind, text="Bind to Avatar", icon="OUTLINER_DATA_ARMATURE")
    button(column, OBJECT_OT_second_life_transfer_weights, text="Transfer Weights…", icon="MOD_DATA_TRANSFER")
    button(column, OBJECT_OT_second_life_fitted_mesh, text="Fitted Mesh", icon="MOD_CLOTH")
    button(column, OBJECT_OT_second_life_clean_weights, text="Clean Weights", icon="BRUSH_DATA")
    button(column, "object.second_life_match_seam", text="Match Seam", icon="AUTOMERGE_ON")
