"""Jobs for render farms (``--openjd``) in the format Open Job Description, which AWS Deadline Cloud reads.

The job is a folder::

    template.json            a step that converts lines of the plan in chunks, and one that collects the results
    parameter_values.json    paths on this machine, for Deadline Cloud
    asset_references.json    files that the job reads and folders that it writes, for Deadline Cloud
    parameters.json          the same paths for ``openjd run -p file://parameters.json``
    plan/                    a plan of the remaining tasks, and the journal

All paths are parameters of the type PATH, which farms map to the paths of their machines. ``openjd_template.json``
follows the template schemas [version 2023-09], to which the section numbers in this module refer.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import re
import shlex
import shutil
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from ....blender_data.importing.import_options import MATERIAL_LIBRARY
from ....io_formats.core.errors import MeshferryError, refusal
from ....io_formats.core.messages import counted
from ....io_formats.disk.atomic_write import replace_file
from ....io_formats.partner_files import PartnerFiles
from ...conversions import blender_formats
from ...reporting import Reporter
from ..plan import Plan, connect, insert_tasks, new_plan, set_head, to_sql
from ..settings import BatchSettings
from ..state import State
from ..tasks import JOURNAL_FILE, Task
from .shard_command import shard_options, worker_command

TEMPLATE_FILE = "template.json"
VALUES_FILE = "parameter_values.json"
ASSETS_FILE = "asset_references.json"
PARAMETERS_FILE = "parameters.json"
PLAN_FOLDER = "plan"

MOST_TASKS = 10_000
"""Maximum number of farm tasks, each of which is a record of the farm. In a longer plan, a task has several lines."""
CHUNK = 50
"""Initial number of lines in a chunk; farms adapt it to the measured time."""
_LONGEST_VALUE = 1024
"""Maximum length of a parameter's value in characters (2.5)."""
_NOT_UTF8 = re.compile("[\ud800-\udfff]")
_LIBRARY = "MaterialLibrary"
_LIBRARY_FLAG = "--" + MATERIAL_LIBRARY.name.replace("_", "-") + "="


def write_job(folder: Path, settings: BatchSettings, plan: Plan, state: State, reporter: Reporter) -> int:
    """Write a job with the tasks that a run would convert; return 0.

    Raises
    ------
    MeshferryError
        The folder has other files or cannot be written to, or a path cannot be part of a job.
    """
    tasks = (task for task, known in state.tasks() if settings.checksum or known is None or not known.is_same)
    first = next(tasks, None)
    if first is None:
        reporter.record({"job": str(folder), "files": 0})
        reporter.say(f"There is nothing to do for {counted(plan.count, 'file')}, so no job was written")
        return 0
    template, parameters = folder / TEMPLATE_FILE, folder / PARAMETERS_FILE
    own = {TEMPLATE_FILE, VALUES_FILE, ASSETS_FILE, PARAMETERS_FILE, PLAN_FOLDER}
    try:
        others = sorted(set(os.listdir(folder)) - own) if folder.exists() else []
        if others:
            raise MeshferryError(
                "{} holds '{}', which does not belong to a job; name another folder", folder, others[0]
            )
        (folder / PLAN_FOLDER).mkdir(parents=True, exist_ok=True)
        # The template is written last: without it, an incomplete folder is not a job.
        template.unlink(missing_ok=True)
        part = _write_plan(plan, itertools.chain([first], tasks), folder / PLAN_FOLDER)
        shutil.copyfile(state.journal_path, folder / PLAN_FOLDER / JOURNAL_FILE)
        values = _values(part, state.output)
        job = _template(part, values, settings)
        entries = [{"name": name, "value": value} for name, value in values.items()]
        (folder / VALUES_FILE).write_bytes(_json({"parameterValues": entries}))
        _write_assets(folder / ASSETS_FILE, part, values)
        parameters.write_bytes(_json(values))
        replace_file(template, _json(job))
    except (OSError, sqlite3.Error) as problem:
        reason = refusal(problem) if isinstance(problem, OSError) else str(problem)
        raise MeshferryError("{}: the job cannot be written: {}", folder, reason) from None
    reporter.record({"job": str(folder), "files": part.count})
    reporter.say(f"{folder}: a job for {counted(part.count, 'file')}; to run it here:")
    reporter.say(shlex.join(["openjd", "run", str(template), "-p", f"file://{parameters}"]))
    return 0


def _write_plan(plan: Plan, tasks: Iterable[Task], folder: Path) -> Plan:
    """Write a plan of these tasks with one common root; return it."""
    try:
        root = os.path.commonpath(plan.roots)
    except ValueError:
        raise MeshferryError("The sources are on several drives; write a job for each drive") from None
    below = [os.path.relpath(each, root).replace(os.sep, "/") for each in plan.roots]
    prefixes = ["" if path == "." else path + "/" for path in below]
    lines = itertools.count(1)
    with new_plan(folder) as connection, contextlib.closing(connect(plan.path, immutable=1)) as whole:
        rows = (
            (next(lines), 0, *map(to_sql, (prefixes[task.root] + task.path, task.member, task.target)), *task[-2:])
            for task in tasks
        )
        insert_tasks(connection, rows)
        connection.executemany("INSERT INTO names VALUES (?)", whole.execute("SELECT name FROM names ORDER BY name"))
        set_head(connection, dataclasses.replace(plan.head, roots=(root,), count=next(lines) - 1))
    return Plan(folder)


def _values(part: Plan, output: Path) -> dict[str, str]:
    """Return the values of the path parameters on this machine, by name."""
    values = {"Output": str(output), "Sources1": part.roots[0]}
    if library := part.head.settings.import_options.get(MATERIAL_LIBRARY.name):
        values[_LIBRARY] = library
    for value in values.values():
        if len(value) > _LONGEST_VALUE:
            raise MeshferryError(
                "{}: a path in a job may have {:,} characters, not {:,}", value, _LONGEST_VALUE, len(value)
            )
        if _NOT_UTF8.search(value):
            raise MeshferryError("{}: the folder name is not valid UTF-8; rename it", value)
    return values


def _template(part: Plan, values: dict[str, str], settings: BatchSettings) -> dict[str, Any]:
    """Return the job template (1.1)."""
    command = worker_command(settings)
    for word in command:
        if "{{" in word:
            raise MeshferryError(
                "'{}' cannot be part of the command: in a job, '{{{{' starts the name of a parameter", word
            )
    program, *words = command
    group = -(-part.count // MOST_TASKS)
    template: dict[str, Any] = json.loads(resources.files(__package__).joinpath("openjd_template.json").read_text())
    template["name"] = f"Meshferry: {counted(part.count, 'file')} to {part.head.extension}"[:128]
    template["description"] = f"Written by Meshferry {part.head.version}. {template['description']}"
    defaults = {"Meshferry": program, "ChunkSize": max(1, CHUNK // group)}
    template["parameterDefinitions"] = [
        definition | ({"default": defaults[name]} if (name := definition["name"]) in defaults else {})
        for definition in template["parameterDefinitions"]
        if definition["name"] != _LIBRARY or _LIBRARY in values
    ]
    begin = [*words, "batch", "--plan", "{{Param.Plan}}", "-o", "{{Param.Output}}", "--root", "{{Param.Sources1}}"]
    if _LIBRARY in values:
        begin.append(f"{_LIBRARY_FLAG}{{{{Param.{_LIBRARY}}}}}")
    convert_options = [*([f"--lines={group}"] if group > 1 else []), *shard_options(settings)]
    # The path of the report may not exist on the farm.
    collect_options = [] if settings.report is None else ["--report"]
    for step, more in zip(template["steps"], (convert_options, collect_options), strict=True):
        action = step["script"]["actions"]["onRun"]
        action["args"] = [*begin, *action["args"], *more]
    parameters = template["steps"][0]["parameterSpace"]["taskParameterDefinitions"]
    parameters[0]["range"] = f"1-{-(-part.count // group)}"
    return template


def _write_assets(path: Path, part: Plan, values: dict[str, str]) -> None:
    """Write the files that Deadline Cloud copies to machines without shared disks, and the folder that it copies back.

    Names that are not valid UTF-8 are omitted; the conversion reports the missing file.
    """
    found = itertools.chain(_input_files(part), [values[_LIBRARY]] if _LIBRARY in values else [])
    files = [file for file in found if not _NOT_UTF8.search(file)]
    outputs = {"directories": [values["Output"]]}
    inputs = {"filenames": files, "directories": []}
    references = {"inputs": inputs, "outputs": outputs, "referencedPaths": part.roots}
    path.write_bytes(_json({"assetReferences": references}))


def _input_files(part: Plan) -> Iterator[str]:
    """Yield the paths of all sources and archives, and of the other files of sources that consist of several files."""
    sets: dict[str, set[str]] = defaultdict(set)
    """Names of sources that consist of several files, by folder."""
    finder = PartnerFiles()
    last = ""
    for task in part.tasks():
        if task.size < 0 or task.path == last:  # missing, or another member of the same archive
            continue
        last = task.path
        path = os.path.join(part.roots[0], *task.path.split("/"))
        kind = blender_formats.by_extension(os.path.splitext(path)[1])
        if kind is not None and kind.is_set:
            folder, name = os.path.split(path)
            sets[folder].add(name)
        yield path
        yield from map(str, finder.partners(path).values())
    for folder, names in sets.items():
        stems = {os.path.splitext(name)[0] for name in names}
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                # "lamp.mtl" and "lamp_glass.png" belong to "lamp.obj".
                belongs = any(entry.name[:end] in stems for end in range(1, len(entry.name)))
                if belongs and entry.name not in names and entry.is_file():
                    yield entry.path


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode("ascii")
