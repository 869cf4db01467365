"""A batch as a job for render farms: a bundle after Open Job Description, as AWS Deadline Cloud takes it.

::

    template.json            the job: a step that converts, lines of the plan in chunks, and one that brings it together
    parameter_values.json    where things lie on this machine (Deadline Cloud's file)
    asset_references.json    which files the job needs and where it writes (Deadline Cloud's file)
    parameters.json          the same values as ``openjd run -p file://parameters.json`` takes them
    plan/                    what there is to do, and what the journal knows so far

Template Schemas [version 2023-09] with the extension TASK_CHUNKING. The chunks of the parameter ``Lines`` become
``--range`` of :mod:`.shard`. All places are parameters of the type PATH, so that a farm maps them to where its machines
see them. Section numbers in this file are those of the schemas.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from ....blender_data.importing.import_options import MATERIAL_LIBRARY
from ....io_formats.core.errors import MeshferryError
from ....io_formats.disk.atomic_write import refusal, replace_file
from ...conversions import blender_formats
from ...reporting import counted
from ..plan.plan_file import BatchFile, Plan, line_of
from ..plan.target_index import TARGETS_FILE
from ..tasks import BATCH_FILE, JOURNAL_FILE, PLAN_FILE, STATE_FOLDER, Task

TEMPLATE_FILE = "template.json"
VALUES_FILE = "parameter_values.json"
ASSETS_FILE = "asset_references.json"
PARAMETERS_FILE = "parameters.json"
PLAN_FOLDER = "plan"

MOST_TASKS = 10_000
"""A farm keeps a record of each task. In a longer plan, a task is several lines."""
CHUNK = 50
"""Lines of a chunk, until a farm has seen how long one takes."""
CHUNK_SECONDS = 120
"""How long a chunk should take: long against the start of Blender, short against the loss of a machine."""
_MOST_ROOTS = 40
"""Folders of sources that have a parameter of their own; a job has fifty parameters (1.1)."""
_LONGEST_VALUE = 1024
"""Characters of a parameter's value (2.5)."""
_LIBRARY_FLAG = "--" + MATERIAL_LIBRARY.name.replace("_", "-") + "="


@dataclass(frozen=True, slots=True)
class Job:
    """What a bundle is made of."""

    plan: Plan
    tasks: Iterable[Task]
    """Those that are to be done, in the order of the plan; gone through once."""
    output: Path
    """The output folder, absolute."""
    command: tuple[str, ...] = ("meshferry",)
    """What starts Meshferry on the farm's machines."""
    shard_options: tuple[str, ...] = ()
    """Arguments for the conversion of a chunk, such as ``--time-limit=60``."""
    collect_options: tuple[str, ...] = ()
    """Arguments for what brings it all together, such as ``--report``."""


def write(job: Job, folder: Path) -> int:
    """Write the bundle of a job; return how many works it has. Where there are none, nothing is written.

    Parameters
    ----------
    folder:
        Made where needed; an earlier bundle in it is replaced.

    Raises
    ------
    MeshferryError
        There are other files in the folder, it cannot be written to, or something is no part of a job: a path of more
        than 1,024 characters, say.
    """
    tasks = iter(job.tasks)
    first = next(tasks, None)
    if first is None:
        return 0
    _require_own(folder)
    roots = _Roots(job.plan.roots)
    plan_folder = folder / PLAN_FOLDER
    try:
        plan_folder.mkdir(parents=True, exist_ok=True)
        # Without its template a job is none: an interrupted writing leaves nothing that looks whole.
        (folder / TEMPLATE_FILE).unlink(missing_ok=True)
        batch = _write_plan(job.plan, itertools.chain([first], tasks), roots, plan_folder)
        _bring_state(job.output, plan_folder)
        values = _values(job, batch)
        template = _template(job, batch, list(values))
        _write_json(folder / VALUES_FILE, {"parameterValues": [{"name": n, "value": v} for n, v in values.items()]})
        _write_assets(folder / ASSETS_FILE, job.output, Plan.open(plan_folder))
        _write_json(folder / PARAMETERS_FILE, values)
        replace_file(folder / TEMPLATE_FILE, _json(template))
    except OSError as problem:
        raise MeshferryError(f"{folder}: the job cannot be written: {refusal(problem)}") from None
    return batch.count


def _require_own(folder: Path) -> None:
    """Refuse a folder that is in use for something else."""
    ours = {TEMPLATE_FILE, VALUES_FILE, ASSETS_FILE, PARAMETERS_FILE, PLAN_FOLDER}
    try:
        strange = sorted(set(os.listdir(folder)) - ours)
    except FileNotFoundError:
        return
    except OSError as problem:
        raise MeshferryError(f"{folder}: {refusal(problem)}") from None
    if strange:
        raise MeshferryError(f"{folder} holds '{strange[0]}', which does not belong to a job; name another folder")


class _Roots:
    """The plan's folders of sources, put together where there are too many for a parameter each."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._old = roots
        self.new = tuple(roots)
        self._place = list(range(len(roots)))
        if len(roots) > _MOST_ROOTS:
            groups: dict[str, list[str]] = defaultdict(list)
            for root in roots:
                groups[PurePath(root).anchor].append(root)
            self.new = tuple(os.path.commonpath(group) for group in groups.values())
            anchors = list(groups)
            self._place = [anchors.index(PurePath(root).anchor) for root in roots]
            if len(self.new) > _MOST_ROOTS:
                raise MeshferryError(
                    f"The sources lie on {len(self.new)} drives, and a job knows {_MOST_ROOTS} folders"
                )

    def moved(self, task: Task, number: int) -> Task:
        """Return a work as the bundle's plan has it."""
        place = self._place[task.root]
        if self.new[place] == self._old[task.root]:
            return dataclasses.replace(task, number=number)
        path = Path(self._old[task.root], task.path).relative_to(self.new[place]).as_posix()
        return dataclasses.replace(task, number=number, root=place, path=path)


def _files(tasks: Iterable[Task], roots: Sequence[str]) -> Iterator[str]:
    """Yield the paths of all files that are read: sources, archives and what lies beside sources of sets."""
    sets: dict[str, set[str]] = defaultdict(set)
    """Names of sources that are several files, by folder."""
    last = ""
    for task in tasks:
        if task.size < 0 or task.path == last:  # not there; or in the same archive
            continue
        last = task.path
        path = os.path.join(roots[task.root], *task.path.split("/"))
        kind = blender_formats.by_extension(os.path.splitext(path)[1])
        if kind is not None and kind.is_set:
            folder, name = os.path.split(path)
            sets[folder].add(name)
        yield path
    for folder, names in sets.items():
        stems = {os.path.splitext(name)[0] for name in names}
        yield from (
            os.path.join(folder, name) for name in _listed(folder) if name not in names and _belongs(name, stems)
        )


def _listed(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_file())
    except OSError:
        return []


def _belongs(name: str, stems: set[str]) -> bool:
    """Tell whether a file is called after one of some sources: ``lamp.mtl`` and ``lamp_glass.png`` after ``lamp``."""
    return any(name[:end] in stems for end in range(1, len(name)))


def _write_plan(plan: Plan, tasks: Iterable[Task], roots: _Roots, folder: Path) -> BatchFile:
    """Write the bundle's plan; return its head."""
    count = size = 0
    with (folder / PLAN_FILE).open("wb") as stream:
        for task in tasks:
            moved = roots.moved(task, count)
            size += stream.write(line_of(moved))
            count += 1
    batch = dataclasses.replace(plan.batch, roots=roots.new, count=count, plan_size=size)
    (folder / BATCH_FILE).write_text(batch.to_json(), encoding="ascii")
    return batch


def _bring_state(output: Path, folder: Path) -> None:
    """Copy what machines need to know that do not see the output folder, only what they write into it."""
    for name in (TARGETS_FILE, JOURNAL_FILE):
        source = output / STATE_FOLDER / name
        if source.exists():
            shutil.copyfile(source, folder / name)
        else:
            (folder / name).unlink(missing_ok=True)


def _library(batch: BatchFile) -> str:
    """Return the material library that the conversion reads, or nothing."""
    found = [argument.removeprefix(_LIBRARY_FLAG) for argument in batch.argv if argument.startswith(_LIBRARY_FLAG)]
    return found[-1] if found else ""


def _values(job: Job, batch: BatchFile) -> dict[str, str]:
    """Return where things lie on this machine, by name of the parameter.

    Raises
    ------
    MeshferryError
        A path is too long, or not one that another machine could be told.
    """
    values = {"Output": str(job.output)}
    values |= {f"Sources{number}": root for number, root in enumerate(batch.roots, start=1)}
    if _library(batch):
        values["MaterialLibrary"] = _library(batch)
    for value in values.values():
        if len(value) > _LONGEST_VALUE:
            raise MeshferryError(f"{value}: a job takes paths of {_LONGEST_VALUE:,} characters, not {len(value):,}")
        if not _is_text(value):
            raise MeshferryError(f"{value}: the folder name is not valid UTF-8; rename it")
    return values


def _is_text(name: str) -> bool:
    """Tell whether a name is one, and no bytes that no encoding explains."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _write_assets(path: Path, output: Path, plan: Plan) -> None:
    """Write what Deadline Cloud carries to machines that do not share a disk, and back from them."""
    library = _library(plan.batch)
    mark = "files"
    told = {
        "assetReferences": {
            "inputs": {"filenames": [mark], "directories": []},
            "outputs": {"directories": [str(output)]},
            "referencedPaths": list(plan.roots),
        }
    }
    # What is no text in a name cannot be told to another machine; its conversion says that the file is not there.
    found = itertools.chain(_files(plan.tasks(), plan.roots), [library] if library else [])
    files = (json.dumps(file) for file in found if _is_text(file))
    before, after = _json(told).decode("ascii").split(json.dumps(mark), 1)
    with path.open("w", encoding="ascii") as stream:
        # One after the other: a library of a million files has a hundred megabytes of paths.
        stream.write(before + next(files, ""))
        stream.writelines(",\n        " + file for file in files)
        stream.write(after)


def _template(job: Job, batch: BatchFile, names: Sequence[str]) -> dict[str, Any]:
    """Return the job template (1.1)."""
    program, *words = job.command
    for word in job.command:
        if "{{" in word:
            raise MeshferryError(f"'{word}' cannot start anything on a farm: a job reads '{{{{' as a parameter")
    group = -(-batch.count // MOST_TASKS)
    tasks = -(-batch.count // group)
    begin = [*words, "batch", "--plan", "{{Param.Plan}}", "-o", "{{Param.Output}}"]
    for name in names:
        if name.startswith("Sources"):
            begin += ["--root", "{{Param." + name + "}}"]
    if "MaterialLibrary" in names:
        begin.append(_LIBRARY_FLAG + "{{Param.MaterialLibrary}}")
    convert = [*begin, "--range", "{{Task.Param.Lines}}", *([f"--lines={group}"] if group > 1 else [])]
    lines = {
        "name": "Lines",
        "type": "CHUNK[INT]",
        "range": f"1-{tasks}",
        "chunks": {
            "defaultTaskCount": "{{Param.ChunkSize}}",
            "targetRuntimeSeconds": "{{Param.ChunkSeconds}}",
            "rangeConstraint": "CONTIGUOUS",
        },
    }
    return {
        "specificationVersion": "jobtemplate-2023-09",
        "extensions": ["TASK_CHUNKING"],
        "name": f"Meshferry: {counted(batch.count, 'file')} to {batch.extension}"[:128],
        "description": f"Written by Meshferry {batch.version}. Every machine needs the same version.",
        "parameterDefinitions": _definitions(names, program, group),
        "steps": [
            {
                "name": "Convert",
                "description": "Converts some lines of the plan; files that fail are in the journal.",
                "parameterSpace": {"taskParameterDefinitions": [lines]},
                "script": _script([*convert, *job.shard_options]),
            },
            {
                "name": "Collect",
                "description": "Brings together what the machines noted down.",
                "dependencies": [{"dependsOn": "Convert"}],
                "script": _script([*begin, "--collect", *job.collect_options]),
            },
        ],
    }


def _script(arguments: Sequence[str]) -> dict[str, Any]:
    return {"actions": {"onRun": {"command": "{{Param.Meshferry}}", "args": list(arguments)}}}


def _definitions(names: Sequence[str], program: str, group: int) -> list[dict[str, Any]]:
    """Return the parameters of the job (2).

    Defaults of paths lie in the bundle, as Deadline Cloud demands; all others have values in its file.
    """
    sources = sum(name.startswith("Sources") for name in names)
    paths = [_path("Plan", "DIRECTORY", "IN", "The plan of the batch", "What is to be done.", PLAN_FOLDER)]
    for name in names:
        if name == "Output":
            label, told = "Output folder", "Where the files are written, with the journal in meshferry-batch."
            paths.append(_path(name, "DIRECTORY", "OUT", label, told))
        elif name == "MaterialLibrary":
            paths.append(_path(name, "FILE", "IN", "Material library", "The file that materials are taken from."))
        else:
            # Not IN, which would carry the whole folder: what is needed of it stands in the asset references.
            label = "Sources" if sources == 1 else f"Sources {name.removeprefix('Sources')}"
            paths.append(_path(name, "DIRECTORY", "NONE", label, "A folder that the files to convert lie below."))
    chunk_told = "How many tasks a machine is given at once, until it is known how long they take."
    seconds_told = "How long a machine should have to do at a time, in seconds; 0: always the same number of tasks."
    size = max(1, CHUNK // group)
    return [
        *paths,
        {
            "name": "Meshferry",
            "type": "STRING",
            "default": program,
            "minLength": 1,
            "description": "The program that runs on the machines.",
            "userInterface": {"control": "LINE_EDIT", "label": "Program", "groupLabel": "Machines"},
        },
        _number("ChunkSize", size, 1, "Tasks at once", chunk_told),
        _number("ChunkSeconds", CHUNK_SECONDS, 0, "Seconds at once", seconds_told),
    ]


def _path(name: str, kind: str, flow: str, label: str, told: str, default: str | None = None) -> dict[str, Any]:
    control = "CHOOSE_INPUT_FILE" if kind == "FILE" else "CHOOSE_DIRECTORY"
    definition = {
        "name": name,
        "type": "PATH",
        "objectType": kind,
        "dataFlow": flow,
        "description": told,
        "userInterface": {"control": control, "label": label, "groupLabel": "Places"},
    }
    return definition if default is None else definition | {"default": default}


def _number(name: str, default: int, least: int, label: str, told: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "INT",
        "default": default,
        "minValue": least,
        "description": told,
        "userInterface": {"control": "SPIN_BOX", "label": label, "groupLabel": "Machines"},
    }


def _write_json(path: Path, value: Any) -> None:
    path.write_bytes(_json(value))


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode("ascii")
