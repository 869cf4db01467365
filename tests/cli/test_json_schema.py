"""The schema of ``--json``: each command prints what it says, and what no command prints is refused.

``Result.entries`` in ``conftest.py`` checks the output of all other tests, too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

jsonschema = pytest.importorskip("jsonschema")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ROOT = EXAMPLES.parent
LAMP, DANCE = EXAMPLES / "lamp.mesh", EXAMPLES / "dance.anim"
COMMANDS = [
    ("inspect", ("inspect", EXAMPLES, "--verify"), 0),
    ("unreadable", ("inspect", "nowhere.mesh"), 1),
    ("check", ("check", EXAMPLES), 0),
    ("unreadable", ("check", "*.mesh"), 1),
    ("convert", ("convert", LAMP, "lamp.mesh", "--mesh-version", "ms12"), 0),
    ("convert", ("convert", LAMP, "lamp.llmesh"), 1),
    ("convert", ("convert", EXAMPLES / "tunic.llmesh", "tunic.slm", "--dry-run"), 0),
    ("unmatched", ("convert", "*.mesh", LAMP, "--to", "data", "-o", "out"), 1),
    ("batch", ("batch", LAMP, "--to", "data", "-o", "out", "--dry-run"), 0),
    ("format", ("formats",), 0),
]


def validator(kind: str) -> Any:
    content = json.loads((ROOT / "cli" / "json_schema.json").read_text("utf-8"))
    return jsonschema.Draft202012Validator(content | {"anyOf": [{"$ref": f"#/$defs/{kind}"}]})


@pytest.mark.parametrize(("kind", "arguments", "status"), COMMANDS, ids=[f"{one[0]}-{one[1][0]}" for one in COMMANDS])
def test_each_command_prints_what_the_schema_says(
    kind: str, arguments: tuple[Any, ...], status: int, meshferry: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = meshferry(*arguments, "--json")
    assert done.status == status, done.err
    entries = done.entries
    assert entries and any(validator(kind).is_valid(entry) for entry in entries)


@pytest.mark.slow
@pytest.mark.needs_workers
def test_a_batch_prints_what_the_schema_says(meshferry: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = ("batch", EXAMPLES, "--to", "llmesh", "-o", "out", "--json")
    for results in ({"done", "failed"}, {"skipped", "failed"}):
        *tasks, summary = meshferry(*command).entries
        assert {entry["result"] for entry in tasks} == results
        assert all(map(validator("batch").is_valid, tasks)) and validator("summary").is_valid(summary)


def test_other_objects_are_refused() -> None:
    for entry in ({}, {"file": "a"}, {"input": "a", "output": "b"}, {"file": "a", "error": "b", "more": 1}):
        assert not any(
            validator(kind).is_valid(entry) for kind in ("inspect", "check", "convert", "batch", "unreadable")
        )
