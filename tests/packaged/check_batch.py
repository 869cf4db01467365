"""Install a built package into an empty profile of a real Blender and run batches with its worker processes.

    python check_batch.py BLENDER PACKAGE.zip FOLDER_OF_EXAMPLES

Inside Blender the workers are Blenders themselves, which have to find the extension and the libraries it brings, also
where it is not enabled. Any Python will do. Started by scripts/run_packaged_tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

MODELS = ("windmill.timbermesh", "lamp.mesh", "lamp_nod.anim", "tunic.llmesh")
SECONDS = 200


def check(condition: bool, message: str) -> None:
    """Fail with a message; assert would vanish under ``-O`` and says less."""
    if not condition:
        raise SystemExit(f"FAILED: {message}")
    print(f"ok: {message}", flush=True)


def run(command: Sequence[str], environment: dict[str, str], status: int = 0) -> str:
    """Run a Blender to its end; return what it said."""
    done = subprocess.run(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        env=environment,
        timeout=SECONDS,
    )
    if done.returncode != status:
        raise SystemExit(f"FAILED with status {done.returncode}: {' '.join(command)}\n{done.stdout}")
    return done.stdout


def results(output: Path) -> list[str]:
    """Return how each work of a batch ended, by its journal."""
    lines = (output / "meshferry-batch" / "journal.jsonl").read_text(encoding="ascii").splitlines()
    return [entry["result"] for entry in map(json.loads, lines) if "target" in entry]


def check_batches(way: str, start: Sequence[str], environment: dict[str, str], sources: Path, below: Path) -> None:
    """Convert through Blender, between our own formats, and again, when there is nothing to do."""
    blends, meshes = below / "blends", below / "meshes"
    batch = [*start, "batch", str(sources), "--jobs", "2"]
    run([*batch, "--to", "blend", "--clashes", "number", "--report", "-o", str(blends)], environment)
    check(results(blends) == ["done"] * len(MODELS), f"{way}: {len(MODELS)} models became .blend files")
    check((blends / "meshferry-batch" / "report.html").is_file(), f"{way}: and have a report")
    to_meshes = [*batch, "--to", "mesh", "--match", "*.timbermesh", "-o", str(meshes)]
    run(to_meshes, environment)
    check(results(meshes) == ["done"] and any(meshes.glob("*.mesh")), f"{way}: one went from format to format")
    check("Nothing was to do" in run(to_meshes, environment), f"{way}: and is known the second time")


def main() -> None:
    """Install, then run batches in both ways."""
    blender, package, examples = sys.argv[1], str(Path(sys.argv[2]).resolve()), Path(sys.argv[3]).resolve()
    with tempfile.TemporaryDirectory() as place:
        below = Path(place)
        environment = os.environ | {"BLENDER_USER_RESOURCES": str(below / "profile"), "HOME": place}
        environment.pop("PYTHONPATH", None)
        (below / "profile").mkdir()
        (below / "sources").mkdir()
        for name in MODELS:
            (below / "sources" / name).write_bytes((examples / name).read_bytes())
        run([blender, "--command", "extension", "install-file", "-r", "user_default", "-e", package], environment)
        check_batches("as a command", [blender, "--command", "meshferry"], environment, below / "sources", below / "a")
        script = below / "profile" / "extensions" / "user_default" / "meshferry" / "cli" / "convert.py"
        start = [blender, "-b", "--factory-startup", "--python", str(script), "--"]
        check_batches("not enabled", start, environment, below / "sources", below / "b")


if __name__ == "__main__":
    main()
