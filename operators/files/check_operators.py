"""Check against the rules of the target program without writing a file."""

from pathlib import Path
from typing import Any

import bpy

from ...blender_data import file_records
from ...blender_data.animated_blocks import dependencies
from ...blender_data.animation.clip_sources import keys_outside
from ...blender_data.exporting import object_selection
from ...blender_data.exporting.object_selection import candidates_of
from ...io_formats.api import check_part, split
from ...io_formats.core.format import Format
from ...io_formats.core.messages import Kind, Message, Text, counted, distinct, error, errors_of, joined
from ...io_formats.core.options import Option
from ..findings.finding_list import keep_findings
from ..layouts import IS_MESH, requires
from ..option_properties import chosen_options, last_values
from ..reports import Messages, inform, report_lines, warn
from ..translations import rpt_
from .export_base import read_blender_scene, without_needless_clips


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
        findings: list[Message] = []
        with messages.outcome(name):
            self.find(context, findings)
        findings += messages.findings or [
            error("cannot-be-exported", "{}", cause) for _name, cause in messages.failures
        ]
        findings = sorted(findings, key=lambda finding: finding.kind is not Kind.ERROR)
        keep_findings(context, self.format, name, findings)
        report_lines(self, [rpt_(finding) for finding in findings])
        errors = len(errors_of(findings))
        parts = [
            counted(errors, "error") if errors else "",
            counted(len(findings) - errors, "warning") if len(findings) > errors else "",
        ]
        text = joined(filter(None, parts)) or Text("No problems found")
        (warn if findings else inform)(self, "{}: {}", name, text)
        return {"FINISHED"}

    def find(self, context: bpy.types.Context, findings: list[Message]) -> None:
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
        options = chosen_options(self.format.export_options, values)
        files = split(whole, self.format, options)
        said = [*files.messages]
        for scene in files.parts:
            findings += check_part(scene, self.format, options, path=_file_of(source))[1]
            said += scene.warnings
        findings[:] = distinct([*findings, *(message for message in said if message.is_listed)])

    def last_values(self, context: bpy.types.Context) -> dict[str, Any]:
        """Return the options of the last export, or the defaults of the export dialog."""
        return without_needless_clips(last_values(context, self.export_operator, self.option_table))


def _file_of(source: object_selection.Source) -> Path | None:
    """Return the file that objects or a collection came from or were exported to, or else the .blend file."""
    owners = [source.collection] if source.collection is not None else source.objects
    return file_records.path_of(owners or [bpy.context.scene.collection])


class CheckObject(CheckScene):
    """Mixin of operators that check the active object."""

    poll = requires(IS_MESH)

    def subject(self, context: bpy.types.Context) -> str:
        """Return the name of the object."""
        return str(context.object.name)

    def source(self, context: bpy.types.Context) -> tuple[Any, str]:
        """Return the object."""
        return object_selection.Source("OBJECTS", objects=(context.object,)), self.subject(context)
