"""Check against the rules of the target program without writing a file."""

from pathlib import Path
from typing import Any

import bpy

from ...blender_data import file_records
from ...blender_data.exporting import exporter
from ...blender_data.exporting.clips.animated_blocks import dependencies
from ...blender_data.exporting.clips.clip_sources import keys_outside
from ...blender_data.exporting.object_selection import candidates_of
from ...io_formats.api import check_part, split
from ...io_formats.core.findings import Finding, Severity, error, warning
from ...io_formats.core.messages import counted
from ...io_formats.core.options import Option
from ...io_formats.registry import Format
from ..exporting.export_base import read_blender_scene, without_needless_clips
from ..option_properties import last_values, values_for
from ..reporting import Messages, report_lines
from ..translations import rpt_
from .finding_list import keep_findings


class CheckScene:
    """Mixin of operators that check without writing.

    A subclass sets ``format``, the export operator and its options; :meth:`source` returns the objects to check.
    """

    format: Format
    option_table: tuple[Option, ...] = ()
    export_operator = ""

    def source(self, context: bpy.types.Context) -> tuple[Any, str]:
        """Return the objects to check, and their name for messages.

        Raises
        ------
        ExportError
            The object or collection does not exist.
        """
        raise NotImplementedError

    def subject(self, context: bpy.types.Context) -> str:
        """Return the name under which the sidebar shows the findings."""
        raise NotImplementedError

    def execute(self, context: bpy.types.Context) -> set[str]:
        """List the findings in the sidebar and in the Info editor."""
        name = self.subject(context)
        messages = Messages()
        findings: list[Finding] = []
        with messages.outcome(name):
            self.find(context, findings)
        findings += messages.findings or [error("", cause) for _name, cause in messages.failures]
        findings = sorted(findings, key=lambda finding: finding.severity is not Severity.ERROR)
        keep_findings(context, self.format, name, findings)
        report_lines(self, [rpt_(str(finding)) for finding in findings])
        errors = sum(finding.severity is Severity.ERROR for finding in findings)
        parts = [
            counted(errors, "error") if errors else "",
            counted(len(findings) - errors, "warning") if len(findings) > errors else "",
        ]
        text = ", ".join(rpt_(part) for part in parts if part) or rpt_("No problems found")
        self.report({"WARNING"} if findings else {"INFO"}, f"{name}: {text}")
        return {"FINISHED"}

    def find(self, context: bpy.types.Context, findings: list[Finding]) -> None:
        """Prepare an export with the options of the last one, without writing, and apply the rules.

        ``findings`` receives the findings even if the export then fails; they may explain the failure.

        Raises
        ------
        MeshferryError
            The export is not possible at all.
        """
        values = self.last_values(context)
        source, name = self.source(context)
        if self.format.capabilities.clips:
            findings += keys_outside(context.scene, dependencies(candidates_of(context, source)))
        whole = read_blender_scene(context, source, name, self.format, values)
        # Check the whole scene: a file may hold a part of an object, in which triangles have other indices.
        findings += self.format.check_scene(whole)
        options = values_for(self.format.export_options, values)
        files = split(whole, self.format, options)
        findings += whole.findings
        known = {str(finding) for finding in findings}
        said = list(files.losses)
        for scene in files.parts:
            _document, checked = check_part(scene, self.format, options, given=(), path=_file_of(source))
            found = {str(finding): finding for finding in [*checked, *scene.findings]}
            findings += [finding for text, finding in found.items() if text not in known]
            known |= set(found)
            said += scene.warnings
        findings += [warning("", text) for text in dict.fromkeys(said) if text not in known]

    def last_values(self, context: bpy.types.Context) -> dict[str, Any]:
        """Return the options of the last export, or the defaults of the export dialog."""
        return without_needless_clips(last_values(context, self.export_operator, self.option_table))


def _file_of(source: exporter.Source) -> Path | None:
    """Return the file that objects or a collection came from or were exported to, or else the .blend file."""
    owners = [source.collection] if source.collection is not None else source.objects
    return file_records.path_of(owners or [bpy.context.scene.collection])


class CheckObject(CheckScene):
    """Mixin of operators that check the active object."""

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Require an active mesh object."""
        if context.object is None or context.object.type != "MESH":
            cls.poll_message_set("Choose a mesh object")
            return False
        return True

    def subject(self, context: bpy.types.Context) -> str:
        """Return the name of the object."""
        return str(context.object.name)

    def source(self, context: bpy.types.Context) -> tuple[Any, str]:
        """Return the object."""
        return exporter.Source("OBJECTS", objects=(context.object,)), self.subject(context)
