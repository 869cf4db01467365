"""What the library is measured by: its start in a new Python, and what its views add to reading."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from load_package import ROOT

from . import unigine_rows
from .measure import Row, Task, in_turns, ratio_row

OPTIONS = "library         read with its defaults; each start is a new Python that finds the package in its path"
EXAMPLES = ("vase.data", "lamp.mesh", "windmill.timbermesh", "tunic.llmesh", "dance.anim")
"""Small files. Reading the ones after the first takes longer: it needs Protobuf, or the tables of the avatar."""
PROGRAMS = {
    "python": "pass",
    "numpy": "import numpy",
    "meshferry": "import meshferry",
    **{name: f"import meshferry; meshferry.read({str(ROOT / 'examples' / name)!r})" for name in EXAMPLES},
}


def start(_triangles: int, rounds: int, _folder: Path) -> list[Row]:
    """Compare the start of the library with an empty Python, and a small file with NumPy."""
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(ROOT, Path(folder) / "meshferry")
        variables = os.environ | {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": ""}

        def run(program: str) -> None:
            subprocess.run([sys.executable, "-c", program], check=True, env=variables)

        tasks = [Task(name, lambda program=program: run(program)) for name, program in PROGRAMS.items()]
        seconds = in_turns(tasks, max(rounds, 15))
    return [
        ratio_row("import meshferry : empty Python", "meshferry", "python", 1.3, seconds),
        *(
            ratio_row(f"meshferry.read of {name} : import numpy", name, "numpy", None if number else 1.3, seconds)
            for number, name in enumerate(EXAMPLES)
        ),
    ]


def reading(triangles: int, rounds: int, folder: Path) -> list[Row]:
    """Compare ``meshferry.read`` with the reader and the mapping to a scene."""
    import meshferry
    from meshferry.io_formats import registry

    path, _ = unigine_rows.files(folder, f"static-{triangles}")
    unigine_rows.build_static(triangles)
    unigine_rows.export_ours(path)
    known = registry.by_name("unigine_mesh")

    def read_all() -> None:
        for mesh in meshferry.read(path).meshes:
            _ = mesh.points, mesh.triangles, mesh.materials

    tasks = [
        Task("read", read_all),
        Task("codec", lambda: known.to_scene(known.read(path.read_bytes()), "model") and None),
    ]
    seconds = in_turns(tasks, max(rounds, 9))
    return [ratio_row("meshferry.read : reader and scene mapping", "read", "codec", 1.1, seconds)]


GROUPS = {"start": start, "reading": reading}
