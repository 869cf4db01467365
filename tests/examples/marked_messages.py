"""A pseudo-translation: commands and operators with a mark around each template of a message.

Without the marks, statuses, codes, findings, selections, fixes and sentences must be those of a run without: then no
code reads a sentence. Each sentence must have marks, and each template that operators show must be a key of the
translations.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

FIELD = re.compile("{[^}]*}")
SENTENCES = frozenset({"warnings", "error", "text", "message"})
"""Keys of JSON records with sentences."""


class Templates:
    """The templates that messages are made of while they are marked."""

    def __init__(self) -> None:
        self.used: set[str] = set()
        self.composed: set[str] = set()
        """Templates with a marked text as a value that no translation reaches, since it is a plain string."""

    @contextlib.contextmanager
    def marked(self) -> Iterator[None]:
        """Put each template that has words between « and »."""
        from meshferry.io_formats.core.messages import Text

        original = Text.__new__

        def new(cls: type[Text], template: str, *values: object) -> Text:
            if any("«" in value for value in values if isinstance(value, str) and not isinstance(value, Text)):
                self.composed.add(template)
            if isinstance(template, Text) or "«" in template or not has_words(template):
                return original(cls, template, *values)
            self.used.add(template)
            return original(cls, f"«{template}»", *values)

        Text.__new__ = new  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            Text.__new__ = original  # type: ignore[method-assign]


def has_words(template: str) -> bool:
    """Return whether a template has more than values and punctuation."""
    return re.search("[A-Za-z]{2}", FIELD.sub("", template)) is not None


def without_marks(text: str) -> str:
    """Return a text without marks, in lower case: a mark hides the letter that a capital replaces."""
    return re.sub(r"[«»]|\\+u00(ab|bb)", "", text).lower()


def unmarked_sentences(record: Any) -> list[str]:
    """Return the sentences without a mark in a JSON record."""
    if isinstance(record, list):
        return [text for value in record for text in unmarked_sentences(value)]
    if not isinstance(record, dict):
        return []
    found = []
    for key, value in record.items():
        texts = value if isinstance(value, list) else [value]
        found += [text for text in texts if key in SENTENCES and isinstance(text, str) and text and "«" not in text]
        found += unmarked_sentences(value)
    return found


def of_commands(path: Path, targets: Iterable[str], folder: Path) -> Iterator[tuple[str, int, str]]:
    """Yield name, status and output of the commands with a path, without times and the output folder."""
    from meshferry.cli.main import main

    runs = [[command, *options, str(path)] for command in ("inspect", "check") for options in ((), ("--json",))]
    runs += [["convert", "--json", str(path), "--to", target, "-o", str(folder / target)] for target in targets]
    for arguments in runs:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(arguments)
        text = re.sub(r'("seconds": )[\d.]+', r"\g<1>0", out.getvalue() + err.getvalue())
        yield " ".join(arguments).replace(str(folder), ""), status, text.replace(str(folder), "")


def of_operators(bpy: Any, path: Path, importer: str, folder: Path) -> Iterator[tuple[str, Any]]:
    """Import a file; yield the reports, findings of all checks, their selections and fixes, and of the exports."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    folder.mkdir()
    manager = bpy.context.window_manager

    def run(name: str, operator: Callable[..., Any], **values: Any) -> tuple[str, Any]:
        try:
            result = sorted(operator(**values))
        except RuntimeError as problem:
            result = [str(problem).replace(str(folder), "")]
        report = manager.meshferry_report
        return name, [result, report.summary.replace(str(folder), ""), report.lines, selection(bpy.context)]

    yield run("import", getattr(bpy.ops.import_scene, importer), filepath=str(path))
    yield "names", names_in(bpy.data)
    active = bpy.context.view_layer.objects.active
    operators = dir(bpy.ops.export_scene)
    for name in [name for name in operators if name.endswith("_check")]:
        check = getattr(bpy.ops.export_scene, name)
        bpy.context.view_layer.objects.active = active
        if not check.poll():
            continue
        yield run(name, check)
        findings = manager.meshferry_check.findings
        yield name, [[getattr(finding, key) for key in FINDING_KEYS] for finding in findings]
        for index in range(len(findings)):
            yield run(f"{name} select", bpy.ops.object.meshferry_finding_select, index=index)
            if bpy.context.mode != "OBJECT":
                bpy.ops.object.mode_set(mode="OBJECT")
        bpy.context.view_layer.objects.active = active
        yield run(f"{name} fix", bpy.ops.object.meshferry_finding_fix)
        for exporter in [exporter for exporter in operators if name.startswith(exporter) and exporter != name]:
            export = getattr(bpy.ops.export_scene, exporter)
            if export.poll():
                yield run(exporter, export, filepath=str(folder / "export"))
    yield "names", names_in(bpy.data)


FINDING_KEYS = ("item", "message", "is_error", "kind", "node", "members", "fix", "new_name", "names", "about")


def names_in(data: Any) -> list[str]:
    """Return the names of data blocks."""
    kinds = (data.objects, data.meshes, data.armatures, data.materials, data.actions, data.collections)
    return [block.name for blocks in kinds for block in blocks]


def selection(context: Any) -> list[Any]:
    """Return mode, selected objects, and active object with its material slot."""
    active = context.view_layer.objects.active
    slot = [active.name, active.active_material_index] if active is not None else []
    return [context.mode, sorted(obj.name for obj in context.selected_objects), slot]


def differences(plain: Iterable[Any], marked: Iterable[Any]) -> list[str]:
    """Return what differs between two runs besides the marks."""
    pairs = zip(plain, marked, strict=True)
    texts = ((json.dumps(a, ensure_ascii=False), json.dumps(b, ensure_ascii=False)) for a, b in pairs)
    found = []
    for a, b in ((without_marks(a), without_marks(b)) for a, b in texts):
        if a != b:
            same = next((at for at, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), 0)
            start = max(same - 200, 0)
            found.append(f"{a[start:][:400]}\n    with marks: {b[start:][:400]}")
    return found
