"""Check against the rules of the program that will load the file, without writing one; lead to the objects found."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import bpy
from bpy.app.translations import pgettext_iface as iface_
from bpy.app.translations import pgettext_rpt as rpt_
from bpy.props import BoolProperty, CollectionProperty, IntProperty, StringProperty

from ..blender_data import element_selection, level_objects, surfaces
from ..blender_data.exporting import exporter
from ..blender_data.exporting.model_objects import named_levels
from ..blender_data.exporting.object_selection import armature_of
from ..io_formats.findings import Finding, Severity, warning
from ..io_formats.formats import Format
from ..io_formats.import_choices import with_import_choices
from ..io_formats.options import Option, resolve
from .export_base import parts_of, read_scene
from .import_base import leave_edit_mode, select_only
from .option_properties import option_values, values_for
from .reporting import MOST_WARNINGS, REPORT_TEXT, Messages, counted, report_lines
from .sidebar import draw_wrapped

MOST_MEMBERS = 10_000
"""Elements that a finding keeps; nobody mends more of them by hand."""


class MeshferryFinding(bpy.types.PropertyGroup):
    """One finding of the last check."""

    item: StringProperty(name="Item", description="What the finding is about")
    message: StringProperty(name="Message", description="What is wrong and what comes of it")
    is_error: BoolProperty(name="Error", description="The file could not be loaded, so the export is refused")
    kind: StringProperty(
        name="Kind of Elements", description="What exactly it is about: triangles, vertices or bones; empty: all of it"
    )
    node: StringProperty(name="Owner of Elements", description="Name of the object or armature that they are part of")
    members: StringProperty(name="Elements", description="Their numbers as ranges, or names, at most 10,000")
    member_count: IntProperty(name="Number of Elements", description="How many there are")


class MeshferryCheck(bpy.types.PropertyGroup):
    """The last check, as the sidebar shows it."""

    format: StringProperty(name="Format", description="Name of the format it was checked for")
    subject: StringProperty(name="Subject", description="The collection or object that was checked")
    findings: CollectionProperty(type=MeshferryFinding)


class CheckScene:
    """Mixin of operators that check without writing.

    A subclass sets ``format``, the operator that exports it and its options, and says with :meth:`source` what to
    check.
    """

    format: Format
    option_table: tuple[Option, ...] = ()
    export_operator = ""

    def source(self, context: Any) -> tuple[Any, str]:
        """Return what to check and what to call it.

        Raises
        ------
        ExportError
            It is not there.
        """
        raise NotImplementedError

    def subject(self, context: Any) -> str:
        """Return the name under which the sidebar shows the findings."""
        raise NotImplementedError

    def execute(self, context: Any) -> set[str]:
        """List the findings in the sidebar and in the Info editor."""
        name = self.subject(context)
        messages = Messages()
        findings: list[Finding] = []
        with messages.outcome(name):
            self.find(context, findings)
        findings += [Finding(Severity.ERROR, "", cause) for _name, cause in messages.failures]
        findings = sorted(findings, key=lambda finding: finding.severity is not Severity.ERROR)
        keep_findings(context, self.format, name, findings)
        report_lines(self, [str(finding) for finding in findings])
        errors = sum(finding.severity is Severity.ERROR for finding in findings)
        parts = [
            counted(errors, "{} error", "{} errors") if errors else "",
            counted(len(findings) - errors, "{} warning", "{} warnings") if len(findings) > errors else "",
        ]
        text = ", ".join(part for part in parts if part) or rpt_("nothing to mend")
        self.report({"WARNING"} if findings else {"INFO"}, f"{name}: {text}")
        return {"FINISHED"}

    def find(self, context: Any, findings: list[Finding]) -> None:
        """Export as far as the document, with the options of the last export, and apply the rules.

        What was found is in ``findings`` even where the export then fails, and may say why.

        Raises
        ------
        MeshferryError
            It cannot be exported at all.
        """
        values = self.last_values(context)
        source, name = self.source(context)
        whole = read_scene(context, source, name, self.format, values)
        # Of the whole, since files may hold parts of an object whose triangles count differently.
        findings += self.format.check_scene(whole)
        known = {str(finding) for finding in findings}
        parts = parts_of(whole, self.format, values)
        said = list(parts.lost)
        for scene in parts.scenes:
            table = self.format.export_options
            options = with_import_choices(scene, table, values_for(table, values), ())
            document = self.format.from_scene(scene, options)
            found = {str(finding): finding for finding in self.format.check(document)}
            findings += [finding for text, finding in found.items() if text not in known]
            known |= set(found)
            said += scene.warnings
        findings += [warning("", text) for text in dict.fromkeys(said) if text not in known]

    def last_values(self, context: Any) -> dict[str, Any]:
        """Return the options of the last export, or their defaults in the window."""
        last = context.window_manager.operator_properties_last(self.export_operator)
        if last is None:
            return resolve(self.option_table, headless=False)
        return option_values(last, self.option_table)


class CheckObject(CheckScene):
    """Mixin of operators that check the active object."""

    @classmethod
    def poll(cls, context: Any) -> bool:
        """Need a mesh object."""
        if context.object is None or context.object.type != "MESH":
            cls.poll_message_set("Choose a mesh object")
            return False
        return True

    def subject(self, context: Any) -> str:
        """Return the name of the object."""
        return str(context.object.name)

    def source(self, context: Any) -> tuple[Any, str]:
        """Return the object."""
        return exporter.Source("OBJECTS", objects=(context.object,)), self.subject(context)


def keep_findings(context: Any, target: Format, subject: str, findings: list[Finding]) -> None:
    """Keep the findings of a check for the sidebar."""
    shown = context.window_manager.meshferry_check
    shown.format = target.name
    shown.subject = subject
    shown.findings.clear()
    for finding in findings:
        entry = shown.findings.add()
        entry.item, entry.message = finding.item, finding.message
        entry.is_error = finding.severity is Severity.ERROR
        if finding.elements is not None:
            entry.kind, entry.node = finding.elements.kind, finding.elements.node
            entry.members = members_text(finding.elements.members)
            entry.member_count = len(finding.elements.members)


def draw_findings(layout: Any, context: Any, target: Format, subject: str) -> None:
    """Draw the findings of the last check if it was about this; each leads to what it is about."""
    check = context.window_manager.meshferry_check
    if not subject or (check.format, check.subject) != (target.name, subject):
        return
    if not check.findings:
        layout.label(text="Nothing to mend", icon="CHECKMARK")
    for index, finding in enumerate(check.findings[:MOST_WARNINGS]):
        column = layout.box().column(align=True)
        title = finding.item or iface_("Error" if finding.is_error else "Warning")
        row = column.row()
        row.alert = finding.is_error
        icon = "CANCEL" if finding.is_error else "ERROR"
        row.operator("object.meshferry_finding_select", text=title, icon=icon, translate=False).index = index
        draw_wrapped(column, context, finding.message)
    rest = len(check.findings) - MOST_WARNINGS
    if rest > 0:
        layout.label(text=iface_("and {} more in the text '{}'").format(rest, REPORT_TEXT))


class OBJECT_OT_meshferry_finding_select(bpy.types.Operator):
    """Lead from a finding to its objects."""

    bl_idname = "object.meshferry_finding_select"
    bl_label = "Select What Was Found"
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
            found = objects_about(context, finding.item) or objects_about(context, finding.message)
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
            text = rpt_("'{}' is selected as a whole: what modifiers make, or what has changed, cannot be pointed at")
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


def members_text(members: Sequence[int] | Sequence[str]) -> str:
    """Return elements as text: numbers as ranges (``0-5,9``), names as JSON; the first 10,000 of them."""
    chosen: list[Any] = list(members[:MOST_MEMBERS])
    numbers = sorted(member for member in chosen if isinstance(member, int))
    if len(numbers) < len(chosen):
        return json.dumps(chosen)
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in runs)


def members_of(text: str) -> list[int] | list[str]:
    """Return the elements that :func:`members_text` wrote."""
    if text.startswith("["):
        names: list[str] = json.loads(text)
        return names
    runs = (run.partition("-") for run in text.split(",") if run)
    return [number for first, _, last in runs for number in range(int(first), int(last or first) + 1)]


def objects_about(context: Any, text: str) -> list[Any]:
    """Return the objects that a text names in quotes: by their own name, else by surface, material or action.

    Else by the name that the file has for a level of detail.
    """
    for names_of in (_object_names, _surface_names, _material_names, _action_names):
        found = [item for item in context.view_layer.objects if any(f"'{name}'" in text for name in names_of(item))]
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
    for names_of in (_surface_names(item), [material.name if material is not None else "" for material in slots]):
        for index, name in enumerate(names_of):
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


CLASSES = (
    MeshferryFinding,
    MeshferryCheck,
    OBJECT_OT_meshferry_finding_select,
)

register_classes, unregister_classes = bpy.utils.register_classes_factory(CLASSES)


def register() -> None:
    """Register the operator and the place where the last check is kept."""
    register_classes()
    bpy.types.WindowManager.meshferry_check = bpy.props.PointerProperty(type=MeshferryCheck)


def unregister() -> None:
    """Take them off again, in reverse."""
    del bpy.types.WindowManager.meshferry_check
    unregister_classes()
