"""Check a collection against the game's rules without writing a file, and lead to the objects found."""

from collections.abc import Iterator
from typing import Any

import bpy
from bpy.app.translations import pgettext_rpt as rpt_
from bpy.props import BoolProperty, CollectionProperty, IntProperty, StringProperty

from ..blender_data import exporter
from ..blender_data.export_options import EXPORT_OPTIONS
from ..io_formats.capabilities import losses
from ..io_formats.findings import Finding, Severity, warning
from ..io_formats.formats import TIMBERMESH
from ..io_formats.options import resolve
from .export_base import all_options, named_collection
from .import_base import select_only
from .option_properties import option_values
from .reporting import Messages, counted, report_lines


class MeshferryFinding(bpy.types.PropertyGroup):
    """One finding of the last check."""

    item: StringProperty(name="Item", description="What the finding is about")
    message: StringProperty(name="Message", description="What is wrong and what happens in the game")
    is_error: BoolProperty(name="Error", description="The game fails, so the export is refused")


class MeshferryCheck(bpy.types.PropertyGroup):
    """The last check, as the sidebar shows it."""

    collection: StringProperty(name="Collection", description="The collection that was checked")
    findings: CollectionProperty(type=MeshferryFinding)


class EXPORT_SCENE_OT_timbermesh_check(bpy.types.Operator):
    """List what the game would refuse."""

    bl_idname = "export_scene.timbermesh_check"
    bl_label = "Check Timbermesh"
    bl_description = "Check the collection as the game will see it, without writing a file"

    collection: StringProperty(
        name="Collection",
        description="Name of the collection to check; none: the active one",
        options={"HIDDEN", "SKIP_SAVE"},
    )

    def execute(self, context: Any) -> set[str]:
        """List the findings in the sidebar and in the Info editor."""
        name = self.collection or context.collection.name
        messages = Messages()
        findings: list[Finding] = []
        with messages.outcome(name):
            findings = check_collection(context, name)
        findings += [Finding(Severity.ERROR, "", cause) for _name, cause in messages.failures]
        shown = context.window_manager.meshferry_check
        shown.collection = name
        shown.findings.clear()
        for finding in findings:
            entry = shown.findings.add()
            entry.item, entry.message = finding.item, finding.message
            entry.is_error = finding.severity is Severity.ERROR
        report_lines(self, [str(finding) for finding in findings])
        errors = sum(finding.severity is Severity.ERROR for finding in findings)
        parts = [
            counted(errors, "{} error", "{} errors") if errors else "",
            counted(len(findings) - errors, "{} warning", "{} warnings") if len(findings) > errors else "",
        ]
        text = ", ".join(part for part in parts if part) or rpt_("nothing to mend")
        self.report({"WARNING"} if findings else {"INFO"}, f"{name}: {text}")
        return {"FINISHED"}


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
        found = objects_about(context, finding.item) or objects_about(context, finding.message)
        visible = [item for item in found if item.visible_get(view_layer=context.view_layer)]
        if not visible:
            text = rpt_("'{}' is hidden").format(found[0].name) if found else rpt_("This is not about a single object")
            self.report({"INFO"}, text)
            return {"CANCELLED"}
        select_only(context, visible)
        for item in visible:
            show_material(item, finding.item)
        return {"FINISHED"}


def check_collection(context: Any, name: str) -> list[Finding]:
    """Export a collection as far as the document, with the options of the last export, and apply the game's rules.

    Raises
    ------
    MeshferryError
        It cannot be exported at all.
    """
    options = _last_export_options(context)
    general = {option.name: options[option.name] for option in EXPORT_OPTIONS}
    own = {option.name: options[option.name] for option in TIMBERMESH.export_options}
    collection = named_collection(context, name)
    if collection == context.scene.collection:
        source = exporter.Source("SCENE", None)
    else:
        source = exporter.Source("COLLECTION", collection)
    scene = exporter.export_scene(context, source, general, name, TIMBERMESH.capabilities)
    said = losses(scene, TIMBERMESH.capabilities)
    document = TIMBERMESH.from_scene(scene, own)
    findings = TIMBERMESH.check(document)
    findings += [warning("", text) for text in dict.fromkeys([*said, *scene.warnings])]
    return sorted(findings, key=lambda finding: finding.severity is not Severity.ERROR)


def _last_export_options(context: Any) -> dict[str, Any]:
    table = all_options(TIMBERMESH)
    last = context.window_manager.operator_properties_last("export_scene.timbermesh")
    return option_values(last, table) if last is not None else resolve(table, headless=False)


def objects_about(context: Any, text: str) -> list[Any]:
    """Return the objects that a text names in quotes: by their own name, else by material, else by action."""
    for names_of in (_object_names, _material_names, _action_names):
        found = [item for item in context.view_layer.objects if any(f"'{name}'" in text for name in names_of(item))]
        if found:
            return found
    named = [item for item in context.blend_data.collections if f"'{item.name}'" in text]
    return [item for collection in named for item in collection.all_objects]


def show_material(item: Any, text: str) -> None:
    """Make the material slot active whose material the text names."""
    for index, slot in enumerate(item.material_slots):
        if slot.material is not None and f"'{slot.material.name}'" in text:
            item.active_material_index = index
            return


def _object_names(item: Any) -> Iterator[str]:
    yield item.name
    if item.meshferry.source_name and item.meshferry.given_name == item.name:
        yield item.meshferry.source_name


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
    EXPORT_SCENE_OT_timbermesh_check,
    OBJECT_OT_meshferry_finding_select,
)

register_classes, unregister_classes = bpy.utils.register_classes_factory(CLASSES)


def register() -> None:
    """Register the operators and the place where the last check is kept."""
    register_classes()
    bpy.types.WindowManager.meshferry_check = bpy.props.PointerProperty(type=MeshferryCheck)


def unregister() -> None:
    """Take them off again, in reverse."""
    del bpy.types.WindowManager.meshferry_check
    unregister_classes()
