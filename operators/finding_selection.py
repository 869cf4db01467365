"""Lead from a finding to what it is about: objects, material slots, triangles, vertices, bones."""

from collections.abc import Iterator
from typing import Any

import bpy
from bpy.props import IntProperty

from ..blender_data import element_selection, level_objects, surfaces
from ..blender_data.exporting.model_objects import named_levels
from ..blender_data.exporting.object_selection import armature_of
from .finding_fixes import names_of
from .finding_list import MeshferryFinding, members_of
from .import_base import leave_edit_mode, select_only
from .translations import classes_factory, rpt_


class OBJECT_OT_meshferry_finding_select(bpy.types.Operator):
    """Lead from a finding to its objects."""

    bl_idname = "object.meshferry_finding_select"
    bl_label = "Select the Finding"
    bl_options = {"INTERNAL", "UNDO"}

    index: IntProperty(name="Finding", description="Number of the finding in the list", min=0)

    @classmethod
    def description(cls, context: Any, properties: Any) -> str:
        """Return the whole finding, which the sidebar may be too narrow for."""
        findings = context.window_manager.meshferry_check.findings
        if properties.index >= len(findings):
            return rpt_("Select the objects that this finding is about")
        return rpt_("Select what this is about: {}").format(findings[properties.index].message)

    def execute(self, context: Any) -> set[str]:
        """Select them alone."""
        findings = context.window_manager.meshferry_check.findings
        if self.index >= len(findings):
            return {"CANCELLED"}
        finding = findings[self.index]
        owner = owner_of_elements(context, finding) if finding.kind else None
        if owner is not None:
            return self.select_elements(context, finding, owner)
        if finding.kind:  # elements of a level that the export makes have no object of their own
            made = named_levels(context.view_layer.objects, with_made=True).get(finding.node)
            found = [made] if made is not None else []
        else:
            named = " ".join(f"'{name}'" for name in names_of(finding))
            found = next(filter(None, (objects_about(context, t) for t in (named, finding.item, finding.message))), [])
        visible = [item for item in found if item.visible_get(view_layer=context.view_layer)]
        if not found and finding.kind:
            self.report({"INFO"}, rpt_("'{}' is not in the scene any more").format(finding.node))
            return {"CANCELLED"}
        if not found:
            self.report({"INFO"}, rpt_("This is not about a single object"))
            return {"CANCELLED"}
        leave_edit_mode(context)
        if not visible:  # levels of detail mostly are
            if level_objects.show_only(context, found[:1], []):
                self.report({"INFO"}, rpt_("'{}' is hidden").format(found[0].name))
                return {"CANCELLED"}
            visible = found[:1]
        select_only(context, visible)
        for item in visible:
            show_material(item, finding.item)
        return {"FINISHED"}

    def select_elements(self, context: Any, finding: MeshferryFinding, owner: Any) -> set[str]:
        """Show the object that the elements are part of, and select them there."""
        leave_edit_mode(context)
        if level_objects.show_only(context, [owner], []):
            text = rpt_("'{}' cannot be shown: disabled in viewports, or in an excluded collection")
            self.report({"WARNING"}, text.format(owner.name))
            return {"CANCELLED"}
        select_only(context, [owner])
        members = members_of(finding.members)
        if finding.kind == "bones":
            bpy.ops.object.mode_set(mode="POSE")
            # Names in a file may be others than Blender's.
            names = {name_of_bone(bone): bone.name for bone in owner.data.bones}
            found = element_selection.select_bones(owner, [names.get(str(name), str(name)) for name in members])
            if not found:
                self.report({"INFO"}, rpt_("'{}' does not have these bones any more").format(owner.name))
            return {"FINISHED"}
        numbers = [int(number) for number in members]
        by_faces = finding.kind == "triangles"
        if not element_selection.is_as_read(context, owner, most=max(numbers, default=0), triangles=by_faces):
            text = rpt_("'{}' is selected as a whole: what modifiers make, or what has changed, cannot be selected")
            self.report({"INFO"}, text.format(owner.name))
            return {"FINISHED"}
        choose = element_selection.select_triangles if by_faces else element_selection.select_points
        choose(owner, numbers)
        context.tool_settings.mesh_select_mode = (not by_faces, False, by_faces)
        bpy.ops.object.mode_set(mode="EDIT")
        if finding.member_count > len(numbers):
            text = rpt_("The first {:,} of {:,} are selected")
            self.report({"INFO"}, text.format(len(numbers), finding.member_count))
        return {"FINISHED"}


def owner_of_elements(context: Any, finding: MeshferryFinding) -> Any:
    """Return the object that a finding's elements are part of, hidden or not; None: it is gone."""
    objects = context.view_layer.objects
    if finding.kind != "bones":
        named = next((item for item in objects if finding.node in _object_names(item)), None)
        return named or named_levels(objects, with_made=False).get(finding.node)
    armatures = [item for item in objects if item.type == "ARMATURE"]
    named = [item for item in armatures if finding.node in (*_object_names(item), item.data.name)]
    if named:
        return named[0]
    return next((armature for item in objects_about(context, finding.item) if (armature := armature_of(item))), None)


def name_of_bone(bone: Any) -> str:
    """Return the name that a bone has in files."""
    kept = bone.meshferry
    return str(kept.source_name) if kept.source_name and kept.given_name == bone.name else str(bone.name)


def objects_about(context: Any, text: str) -> list[Any]:
    """Return the objects that a text names in quotes: by their own name, else by surface, material or action.

    Else by the name that the file has for a level of detail.
    """
    for known_names in (_object_names, _surface_names, _material_names, _action_names):
        found = [item for item in context.view_layer.objects if any(f"'{name}'" in text for name in known_names(item))]
        if found:
            return found
    levels = named_levels(context.view_layer.objects, with_made=True)
    found = [item for name, item in levels.items() if f"'{name}'" in text]
    if found:
        return found
    named = [item for item in context.blend_data.collections if f"'{item.name}'" in text]
    return [item for collection in named for item in collection.all_objects]


def show_material(item: Any, text: str) -> None:
    """Make the material slot active that the text names by its surface or its material."""
    slots = [slot.material for slot in item.material_slots]
    for known_names in (_surface_names(item), [material.name if material is not None else "" for material in slots]):
        for index, name in enumerate(known_names):
            if name and f"'{name}'" in text and index < len(slots):
                item.active_material_index = index
                return


def _object_names(item: Any) -> Iterator[str]:
    yield item.name
    if item.meshferry.source_name and item.meshferry.given_name == item.name:
        yield item.meshferry.source_name


def _surface_names(item: Any) -> Iterator[str]:
    for surface in surfaces.written(item):
        yield surface.name


def _material_names(item: Any) -> Iterator[str]:
    for slot in item.material_slots:
        if slot.material is not None:
            yield slot.material.name


def _action_names(item: Any) -> Iterator[str]:
    if item.animation_data is not None and item.animation_data.action is not None:
        yield item.animation_data.action.name


CLASSES = (OBJECT_OT_meshferry_finding_select,)

register, unregister = classes_factory(CLASSES)
