"""Fix the cause of a finding: safe changes that Undo reverts."""

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np
from bpy.props import IntProperty

from ...blender_data.animation import clean_actions
from ...blender_data.armature_modifiers import armature_of
from ...blender_data.exporting.models.model_objects import named_levels
from ...blender_data.mesh_data import vertex_weights
from ...blender_data.names import name_in_file, set_own_node
from ...blender_data.rigging import bones as rigging_bones
from ...io_formats.core.errors import MeshferryError
from ...io_formats.core.format import Format
from ...io_formats.core.messages import Message, Text, listed
from ...io_formats.registry import by_name
from ..reports import inform, warn
from ..selection import leave_edit_mode
from ..translations import rpt_
from .mesh_tools import apply_scale, scale_refusal


class OBJECT_OT_meshferry_finding_fix(bpy.types.Operator):
    """Fix the cause of a finding."""

    bl_idname = "object.meshferry_finding_fix"
    bl_label = "Fix Finding"
    bl_options = {"INTERNAL", "UNDO"}

    index: IntProperty(name="Finding", description="Number of the finding in the list; -1: all", min=-1, default=-1)

    @classmethod
    def description(cls, context: bpy.types.Context, properties: Any) -> str:
        """Return the tooltip of the button."""
        findings = context.window_manager.meshferry_check.findings
        if not 0 <= properties.index < len(findings):
            return rpt_("Fix all findings that have this button")
        fix = findings[properties.index].fix
        return rpt_(FIXES[fix].description) if fix else ""

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Change the objects or materials and remove the fixed findings from the list."""
        check = context.window_manager.meshferry_check
        chosen = range(len(check.findings)) if self.index == -1 else [self.index]
        leave_edit_mode(context)
        fixed: list[str] = []
        skipped: list[Text] = []
        done: list[int] = []
        for index in chosen:
            if index >= len(check.findings) or not check.findings[index].fix:
                continue
            changed, refused = fix_finding(context, by_name(check.format), check.findings[index])
            fixed += changed
            skipped += refused
            done += [] if refused or not changed else [index]
        for index in reversed(done):
            check.findings.remove(index)
        for text in skipped:
            warn(self, text)
        if not fixed:
            if not skipped:
                inform(self, "The objects of this finding were not found in the scene")
            return {"CANCELLED"}
        inform(self, "Fixed: {}", listed(list(dict.fromkeys(fixed)), len(fixed)))
        return {"FINISHED"}


def list_of(text: str) -> list[Any]:
    """Return a list that a stored finding holds as JSON."""
    found: list[Any] = json.loads(text or "[]")
    return found


def refusals(context: bpy.types.Context, finding: Message) -> list[str]:
    """Return, for each object or material of a finding, why the fix is not safe; an empty text if it is safe."""
    fix = FIXES[finding.code]
    return [rpt_(reason) if (reason := refusal(fix, block)) else "" for block in blocks_of(context, fix, finding.names)]


def blocks_of(context: bpy.types.Context, fix: "Fix", names: Collection[str]) -> list[Any]:
    """Return the objects, materials or collections with these names in the file."""
    if fix.is_of_collection:
        return [collection for collection in context.blend_data.collections if collection.name in names]
    if fix.change is None:
        return [material for material in context.blend_data.materials if name_in_file(material) in names]
    items = context.view_layer.objects
    found = [obj for obj in items if name_in_file(obj) in names or obj.name in names]
    if found:
        return found
    levels = named_levels(items, with_made=False)
    return [levels[name] for name in names if name in levels]


def fix_finding(context: bpy.types.Context, target: Format, finding: Any) -> tuple[list[str], list[Text]]:
    """Fix the cause of a finding; return the names of changed blocks and the reasons why others were not changed."""
    fix = FIXES[finding.fix]
    changed: list[str] = []
    refused: list[Text] = []
    for block in blocks_of(context, fix, set(list_of(finding.names))):
        problem = refusal(fix, block)
        if problem:
            refused.append(Text("'{}': {}", block.name, problem))
            continue
        changed.append(block.name)
        if fix.change is None:
            rename_material(block, finding.new_name)
            continue
        try:
            fix.change(target, block)
        except MeshferryError as problem:
            changed.remove(block.name)
            refused.append(problem.sentence())
    return changed, refused


def refusal(fix: "Fix", block: Any) -> Text | None:
    """Return why a fix would not be safe, or None."""
    if not block.is_editable or (fix.is_of_mesh and not (block.data and block.data.is_editable)):
        return Text("linked from another file")
    if fix.is_of_mesh and block.type != "MESH":
        return Text("not a mesh")
    return fix.refusal(block)


def _action_refusal(obj: Any) -> Text | None:
    action = obj.animation_data.action if obj.animation_data is not None else None
    return None if action is None or action.is_editable else Text("linked from another file")


def rename_material(material: Any, name: str) -> None:
    """Rename a material, or replace it by an existing material with the new name."""
    taken = bpy.data.materials.get(name)
    if taken is not None and taken is not material:
        material.user_remap(taken)
    else:
        material.name = name


def _limit_weights(target: Format, obj: Any) -> None:
    """Remove the weakest bone weights of vertices that have more than a file can hold."""
    most = target.capabilities.influences
    armature = armature_of(obj)
    bones = rigging_bones.exported_bones(armature, target.capabilities) if armature is not None else set()
    deforms = np.array([group.name in bones for group in obj.vertex_groups], bool)
    counts, groups, weights = vertex_weights.read(obj.data)
    vertex = np.repeat(np.arange(len(counts)), counts)
    used = np.flatnonzero((groups < len(deforms)) & (weights > 0))
    used = used[deforms[groups[used]]]
    order = used[np.lexsort((-weights[used], vertex[used]))]
    rank = np.arange(len(order)) - np.searchsorted(vertex[order], vertex[order])
    weakest = order[rank >= most]
    for group in np.unique(groups[weakest]).tolist():
        obj.vertex_groups[group].remove(vertex[weakest[groups[weakest] == group]].tolist())


@dataclass(frozen=True)
class Fix:
    """A change in Blender that removes the cause of a finding."""

    description: str
    change: Callable[[Format, Any], Any] | None = None
    """Changes an object or collection for a target format; None for a material that is renamed."""
    is_of_mesh: bool = False
    refusal: Callable[[Any], Text | None] = lambda _obj: None
    """Returns why an object cannot be changed, or None."""
    is_of_collection: bool = False


_MARK = Fix("Put # before the names of the objects", lambda _target, obj: set_own_node(obj, True))
_SCALE = Fix("Apply the scale to the mesh", lambda _target, obj: apply_scale(obj), True, scale_refusal)
_SUFFIX = "Remove the number suffix of the material name, or use the existing material of that name"
_WEIGHTS = "Keep only the strongest weights of each vertex, as many as a file can hold"
_UV_MAP = "Add a UV map in which each face fills the texture; unwrap it afterwards if needed"
_ACTION = "Remove the keys that hold a shape from the active action of the armature"
FIXES = {
    "blender-name-suffix": Fix(_SUFFIX),
    "unknown-material": Fix("Give the material the suggested name, or use the existing material of that name"),
    "too-many-weights": Fix(_WEIGHTS, _limit_weights, True),
    "no-uv-map": Fix(_UV_MAP, lambda _target, obj: obj.data.uv_layers.new(), True),
    "unmarked-empties": _MARK,
    "merged-animation": _MARK,
    "negative-scale": _SCALE,
    "uneven-scale": _SCALE,
    "keys-of-a-shape": Fix(_ACTION, lambda _target, obj: clean_actions.clean(obj), refusal=_action_refusal),
}
"""The fixes of findings by their code."""
