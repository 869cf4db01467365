"""How long it takes to find the files of a UNIGINE project, and to see that a mesh is in none."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from pathlib import Path
from typing import Any

from .measure import Row, Task, in_turns, ratio_row

FILES = 20_000
PER_FOLDER = 50
READS = 200
"""Reads of the mesh on each side. Looking for a project takes 0.02 ms of 5 ms, so one slow read would hide it."""
_META = (
    '<asset version="2.20.0.0"><guid>{own}</guid><type>texture</type><runtimes>'
    '<runtime id="{own}" name="a.png" link="0"/><runtime id="{made}" name="a.texture" link="1" type="6"/></runtimes>'
    "<parameters>{more}</parameters></asset>"
)
_MORE = "".join(f'<parameter type="int" name="parameter_{number}">{number}</parameter>' for number in range(50))
"""Parameters that make a meta as long as a real one."""


def rows(rounds: int, folder: Path, mesh: Path) -> list[Row]:
    """Compare listing a project with listing its folder, and reading a mesh with and without looking for a project."""
    from meshferry.io_formats.disk.rooted_files import RootedFiles
    from meshferry.io_formats.projects import Projects
    from meshferry.io_formats.unigine.project.project import Project

    data = folder / "project" / "data"
    shutil.rmtree(data.parent, ignore_errors=True)
    make_project(data)

    def list_project() -> None:
        assert Project(RootedFiles(data)).find(guid(f"runtime {FILES // 4 - 1}")).path

    def walk() -> None:
        assert sum(len(names) for _, _, names in os.walk(data)) >= FILES

    try:
        tasks = [Task("project", list_project), Task("os.walk", walk)]
        listing = in_turns(tasks, max(rounds, 9))
    finally:
        shutil.rmtree(data.parent, ignore_errors=True)
    reading = _reads({"looking": Projects(), "plain": None}, mesh)
    return [
        ratio_row(f"list a project of {FILES:,} files : os.walk", "project", "os.walk", 3.0, listing),
        ratio_row("read a mesh outside of projects : not looking for one", "looking", "plain", 1.1, reading),
    ]


def _reads(sides: dict[str, Any], mesh: Path) -> dict[str, list[float]]:
    """Read a mesh with either projects in turns; return the seconds of each read by side."""
    from meshferry.io_formats import api

    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for turn in range(READS + 1):
        for side, projects in sides.items():
            started = time.perf_counter()
            api.read_scene(mesh, projects=projects)
            if turn:
                seconds[side].append(time.perf_counter() - started)
    return seconds


def guid(name: str) -> str:
    """Return a GUID."""
    return hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()


def make_project(data: Path) -> None:
    """Write a project of textures: source, meta, runtime and meta of the runtime of each."""
    table = []
    for number in range(FILES // 4):
        own, made = guid(f"asset {number}"), guid(f"runtime {number}")
        place = data / f"props/set_{number // PER_FOLDER:04}"
        hidden = data / ".runtimes" / made[:2]
        place.mkdir(parents=True, exist_ok=True)
        hidden.mkdir(parents=True, exist_ok=True)
        (place / f"wood_{number}.png").write_bytes(b"png")
        (place / f"wood_{number}.png.meta").write_text(_META.format(own=own, made=made, more=_MORE), "utf-8")
        (hidden / f"{made}.texture").write_bytes(b"tx11")
        (hidden / f"{made}.texture.meta").write_text(f'{{"asset": "{own}", "alias": "a.texture"}}', "utf-8")
        table.append(f'"{own}": "props/set_{number // PER_FOLDER:04}/wood_{number}.png"')
    (data / "guids.db").write_text("{" + ", ".join(table) + "}", "utf-8")
