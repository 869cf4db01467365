"""Every command line of README and guides does what it says, in the order and the folder in which it stands."""

from __future__ import annotations

import gzip
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from generated_tables import ROOT

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])

NOT_RUN = {
    "make ": "makes an environment of its own; CI runs these targets",
    "pip install ": "changes the environment of the tests; tests/packaged installs the wheel with its extras",
    "dask scheduler ": "runs until it is stopped; tests/cli/test_batch_machines.py starts a cluster",
    "dask worker ": "as above",
    "sbatch ": "needs a cluster with Slurm",
}
"""Beginnings of command lines that are not run here, each with its reason."""

CHANGED = {"tcp://farm:8786": "a scheduler that answers", "/shared/blends": "a folder that all machines see"}
"""What stands for something of the reader's own: commands with it are only parsed."""


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """Yield language and text of each code block of a page."""
    yield from re.findall(r"^```(sh|toml)\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def commands(text: str) -> list[str]:
    """Return the command lines of a block, without comments."""
    lines = [re.sub(r"(^|\s+)#\s.*", "", line).strip() for line in text.splitlines()]
    return [line for line in lines if line]


def pages() -> list[object]:
    """Return the pages with commands."""
    return [
        pytest.param(page, id=page.relative_to(ROOT).as_posix())
        for page in PAGES
        if any(language == "sh" for language, _text in blocks(page))
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder with the bundled examples and an archive of a region."""
    (tmp_path / "examples").mkdir()
    for path in (ROOT / "examples").iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path / "examples")
    content = (ROOT / "examples" / "tunic.llmesh").read_bytes()
    with gzip.open(tmp_path / "region.oar", "wb") as stream, tarfile.open(fileobj=stream, mode="w") as archive:
        info = tarfile.TarInfo("assets/98a6e63e-12e2-481a-93db-93e6fa4f8b6d_mesh.llmesh")
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_meshferry(words: list[str]) -> int:
    from meshferry.cli.main import main

    return main(words)


def run(line: str) -> int:
    """Run a command line: Meshferry in this process, others in a shell."""
    if line.startswith("meshferry ") and not re.search(r"[|<>&]", line):
        return run_meshferry(shlex.split(line)[1:])
    if line.startswith("mkdir "):
        os.mkdir(line.removeprefix("mkdir "))
        return 0
    environment = os.environ | {"PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]}
    return subprocess.run(["bash", "-c", line], check=False, timeout=300, env=environment).returncode


def require_options(line: str) -> None:
    """See that the command knows all options of a line that cannot be run."""
    from meshferry.cli.main import build_parser

    build_parser().parse_args(shlex.split(line)[1:])


@pytest.mark.slow
@pytest.mark.any_version
@pytest.mark.needs_bpy
@pytest.mark.skipif(sys.platform == "win32", reason="the blocks are written for POSIX shells")
@pytest.mark.parametrize("page", pages())
@pytest.mark.needs_workers
def test_the_commands_of_a_page_can_be_run_in_order(
    page: Path, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for language, text in blocks(page):
        if language == "toml":
            name, command = re.match(r"# (\S+):\s+(.+)", text).groups()  # type: ignore[union-attr]
            Path(name).write_text(text, encoding="utf-8")
            lines = [command]
        else:
            lines = commands(text)
        for line in lines:
            if line.startswith(tuple(NOT_RUN)):
                continue
            if any(word in line for word in CHANGED):
                require_options(line)
                continue
            capfd.readouterr()
            status = run(line)
            output = capfd.readouterr()
            assert status == 0, f"{line}: exit status {status}\n{output.err}{output.out}"
            for path in outputs(line):
                assert path.exists(), f"{line}: {path} is missing"


def outputs(line: str) -> list[Path]:
    """Return what a command has to write."""
    words = shlex.split(line)
    if "--dry-run" in words or words[:2] not in (["meshferry", "convert"], ["meshferry", "batch"]):
        return []
    if "-o" in words:
        return [Path(words[words.index("-o") + 1])]
    files = [word for word in words[2:] if re.fullmatch(r"[\w/]+\.\w+", word)]
    return [Path(files[-1])] if words[1] == "convert" else []


def test_exceptions_are_needed() -> None:
    lines = [line for page in PAGES for language, text in blocks(page) if language == "sh" for line in commands(text)]
    for word in NOT_RUN:
        assert any(line.startswith(word) for line in lines), word
    for word in CHANGED:
        assert any(word in line for line in lines), word
