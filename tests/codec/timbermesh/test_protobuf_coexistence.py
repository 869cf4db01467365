"""Other add-ons bring protobuf of other versions and take names in its default pool; files are read the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import models
import oracle
import pytest
from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "tests" / "codec" / "helpers" / "coexistence_program.py"
OLD = "4.21.7"
OLD_SITE = ROOT / "build" / f"protobuf-{OLD}"
SAMPLES = ("mechanistry__ShantySpeaker.IronTeeth.Model", "datvm__Crane.Folktails.Model")


@pytest.fixture(scope="module")
def old_protobuf() -> str:
    """Return a folder with the pure-Python protobuf that the official exporter brings; fetched once."""
    if not (OLD_SITE / "google").is_dir():
        wheels = OLD_SITE.with_name(f"{OLD_SITE.name}-wheel")
        command = [
            sys.executable,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "download",
            f"protobuf=={OLD}",
            "--no-deps",
        ]
        command += ["--only-binary", ":all:", "--platform", "any", "--implementation", "py", "--abi", "none"]
        done = subprocess.run(
            [*command, "--dest", str(wheels)], check=False, capture_output=True, encoding="utf-8", timeout=120
        )
        found = sorted(wheels.glob("protobuf-*-py3-none-any.whl")) if wheels.is_dir() else []
        if done.returncode or not found:
            reason = (done.stderr or done.stdout).strip().splitlines() or ["pip said nothing"]
            pytest.skip(f"protobuf {OLD} cannot be fetched here: {reason[-1]}")
        with zipfile.ZipFile(found[0]) as archive:
            archive.extractall(OLD_SITE)
    return str(OLD_SITE)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return a generated file with every kind of message, and real ones where they are."""
    path = tmp_path_factory.mktemp("coexistence") / "generated.timbermesh"
    model = models.model(
        models.node("Łódź"),
        models.mesh_node("Body", 0, node_animations=[models.node_animation()]),
        models.mesh_node("Flag", 0, vertex_animations=[models.vertex_animation()]),
    )
    path.write_bytes(TIMBERMESH.write(model))
    folder = Path(os.environ.get("MESHFERRY_SAMPLES") or ROOT.parent / "shared" / "samples") / "timbermesh"
    real = [folder / f"{name}.timbermesh" for name in SAMPLES]
    return [str(path), *(str(found) for found in real if found.is_file())]


def run(site: str, theirs: str, files: list[str], **environment: str) -> Any:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), json.dumps({"site": site, "theirs": theirs, "files": files})],
        check=False,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        env=oracle.environment(**environment),
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def expected(files: list[str]) -> Any:
    found = run("", "never", files)
    assert found["refused"] == 3
    assert found["version"] != OLD
    return found["digests"]


@pytest.mark.slow
@pytest.mark.parametrize("theirs", ["before", "after", "never"])
def test_the_official_exporters_protobuf(old_protobuf: str, files: list[str], expected: Any, theirs: str) -> None:
    """Before: theirs is imported first, alone. After, never: theirs is first on the path, ours behind it.

    In the second case 4.21.7 finds the compiled part of our protobuf and cannot be imported as it stands.
    """
    found = run(old_protobuf, theirs, files)
    assert (found["version"], found["implementation"]) == (OLD, "python")
    assert found["digests"] == expected
    assert found["refused"] == 3


@pytest.mark.parametrize("theirs", ["before", "after"])
def test_taken_names_in_the_default_pool(files: list[str], expected: Any, theirs: str) -> None:
    found = run("", theirs, files)
    assert found["digests"] == expected
    assert found["refused"] == 3


@pytest.mark.parametrize("theirs", ["before", "after", "never"])
def test_our_protobuf_without_its_compiled_part(files: list[str], expected: Any, theirs: str) -> None:
    found = run("", theirs, files, PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION="python")
    assert found["implementation"] == "python"
    assert found["digests"] == expected
    assert found["refused"] == 3


BROKEN = """
import sys
from load_package import load_package
sys.path.insert(0, sys.argv[1])
load_package()
from meshferry.io_formats.core.errors import MissingLibraryError
from meshferry.io_formats.timbermesh.model.format import TIMBERMESH
try:
    TIMBERMESH.read(b"")
except MissingLibraryError as problem:
    print(problem)
"""


@pytest.mark.parametrize("error", ["SystemError", "TypeError", "AttributeError", "ImportError"])
def test_a_protobuf_that_cannot_be_imported_is_told_in_one_sentence(tmp_path: Path, error: str) -> None:
    folder = tmp_path / "google" / "protobuf"
    folder.mkdir(parents=True)
    (tmp_path / "google" / "__init__.py").touch()
    (folder / "__init__.py").write_text(f"raise {error}('broken here')\n")
    done = subprocess.run(
        [sys.executable, "-c", BROKEN, str(tmp_path)],
        check=False,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        env=oracle.environment(),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    assert "needs the library 'protobuf'" in done.stdout
    assert ("on the path (broken here)" in done.stdout) == (error != "ImportError")
