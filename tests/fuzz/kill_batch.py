"""A batch that is killed repeatedly gives the same result as an undisturbed one.

A library of small files of all formats, some of them broken, is converted once in peace, and once while the
driver or one of its workers is killed at random moments; a killed driver is started again with the same command. After
each kill every file that is there is whole, and no process is left; at the end the outputs are those of the
undisturbed run (byte for byte; ``.blend`` by what is in their data blocks), nothing is left over, and the journal
has each target once. No file whose result a killed driver has reported is converted again.

    python tests/fuzz/kill_batch.py --kills 20 --files 500
    python tests/fuzz/kill_batch.py --kills 20 --files 500 --to blend
    python tests/fuzz/kill_batch.py --kills 100 --files 2000 --driver
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from meshfuzz.checkout import ROOT, leave, load_package

_BROKEN_EVERY = 41
_STATE = "meshferry-batch"
_TIMEOUT = 1800.0
_VECTORS = {"FLOAT2": 2, "FLOAT_VECTOR": 3}
"""Sizes of the values of attributes."""
_REMOVED = 0.1
"""Share of the outputs removed from a finished batch, so that the next run has work to do."""


class KilledBatch:
    """One library, converted in peace and under fire."""

    def __init__(
        self, folder: Path, files: int, extension: str = "mesh", seed: int = 1, *, only_driver: bool = False
    ) -> None:
        self.folder = folder
        self.extension = extension
        self.only_driver = only_driver
        self.rng = random.Random(seed)
        self.kills = {"driver": 0, "worker": 0}
        self.restarts = 0
        self.removed: Counter[str] = Counter()
        """How often the outputs of a finished batch were removed."""
        self.rewritten = 0
        """Outputs that were written again after a kill: of files whose result had not been reported."""
        self.dates: dict[str, int] = {}
        self.source = folder / "library"
        self.broken = _make_library(self.source, files, with_bones=extension == "blend")
        self.peaceful, self.disturbed = folder / "peaceful", folder / "disturbed"
        status = self.start(self.peaceful).wait(_TIMEOUT)
        assert status == (1 if self.broken else 0), f"the undisturbed batch ended with {status}"
        self.wanted = _outputs(self.peaceful)
        self.count = files
        assert len(self.wanted) == files - self.broken

    def start(self, output: Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(ROOT / "cli" / "convert.py"), "batch", str(self.source)]
        options = ["--to", self.extension, "-o", str(output), "--clashes", "number", "--jobs", "2", "--quiet", "--json"]
        with (self.folder / "said.txt").open("ab") as said, self.records(output).open("ab") as records:
            return subprocess.Popen([*command, *options], stdin=subprocess.DEVNULL, stdout=records, stderr=said)

    def records(self, output: Path) -> Path:
        """Return the file for what all drivers of an output folder print."""
        return self.folder / f"{output.name}.jsonl"

    def progress(self) -> int:
        """Return the number of converted files that drivers have reported so far."""
        with contextlib.suppress(FileNotFoundError):
            return self.records(self.disturbed).read_bytes().count(b'"result": "done"')
        return 0

    def reported(self) -> Counter[str]:
        """Return how often drivers reported that they had converted a file, by its target."""
        found: Counter[str] = Counter()
        for line in self.records(self.disturbed).read_bytes().splitlines():
            with contextlib.suppress(ValueError):  # a killed driver may have printed half a line
                record = json.loads(line)
                if record.get("result") == "done":
                    found[Path(record["output"]).relative_to(self.disturbed).as_posix()] += 1
        return found

    def run(self, kills: int) -> None:
        """Convert under fire, and then to the end."""
        driver = self.start(self.disturbed)
        while (left := kills - sum(self.kills.values())) > 0:
            done = self.progress()
            self.wait(driver, done + int(self.rng.uniform(0, 2) * max(self.count - done, 0) / (left + 1)))
            if driver.poll() is not None:
                self.remove_some()
            elif not self.kill(driver, "driver" if self.only_driver or self.rng.random() < 0.5 else "worker"):
                continue
            self.restarts += 1
            driver = self.start(self.disturbed)
        driver.wait(_TIMEOUT)
        self.look()
        status = self.start(self.disturbed).wait(_TIMEOUT)  # what lost its process twice is tried again
        assert status == (1 if self.broken else 0), f"the last run ended with {status}: {self.said()}"

    def wait(self, driver: subprocess.Popen[bytes], lines: int) -> None:
        """Wait until so many files are done, and a moment more; or for a driver that has just begun, a while."""
        ends = time.monotonic() + (60.0 if self.rng.random() < 0.8 else self.rng.uniform(0.0, 1.5))
        while self.progress() < lines and driver.poll() is None and time.monotonic() < ends:
            time.sleep(0.005)
        time.sleep(self.rng.choice((0.0, 0.001, 0.003, 0.01, 0.03)))

    def kill(self, driver: subprocess.Popen[bytes], whom: str) -> bool:
        """Kill the driver or one of its workers, if there is any yet; tell whether to start the driver again."""
        workers = _children(driver)
        if whom == "worker" and workers:
            self.kills["worker"] += 1
            _kill(self.rng.choice(workers))
            return False
        self.kills["driver"] += 1
        driver.kill()
        driver.wait()
        ends = time.monotonic() + 30
        while any(_is_running(worker) for worker in workers):
            assert time.monotonic() < ends, "workers are left of a killed driver"
            time.sleep(0.01)
        self.look()
        return True

    def remove_some(self) -> None:
        """Take away outputs of a batch that is done, which the next run has to make again."""
        there = sorted(_outputs(self.disturbed))
        for name in self.rng.sample(there, int(len(there) * _REMOVED) + 1):
            (self.disturbed / name).unlink()
            self.removed[name] += 1
            self.dates.pop(name, None)

    def look(self) -> None:
        """See that every file is whole: in our formats the one that was wanted, of Blender's one that it can open."""
        for name, data in _outputs(self.disturbed).items():
            assert name in self.wanted, f"{name} should not be there"
            if self.extension == "blend":
                assert data.startswith((b"BLENDER", b"\x28\xb5\x2f\xfd")) and len(data) > 1000, (
                    f"{name} is half written"
                )
            else:
                assert data == self.wanted[name], f"{name}: {len(data):,} bytes are not what was to be written"
        dates = {name: (self.disturbed / name).stat().st_mtime_ns for name in _outputs(self.disturbed)}
        self.rewritten += sum(date != dates.get(name) for name, date in self.dates.items())
        self.dates = dates
        again = {name: count for name, count in self.reported().items() if count > 1 + self.removed[name]}
        assert not again, f"finished, and converted again: {again}"

    def compare(self) -> None:
        """Compare the end with that of the undisturbed run."""
        assert _outputs(self.disturbed).keys() == self.wanted.keys()
        self.look()
        if self.extension == "blend":
            assert _fingerprints(self.disturbed) == _fingerprints(self.peaceful), "what is in the files differs"
        there = {path.name for path in (self.disturbed / _STATE).iterdir()}
        wanted = {path.name for path in (self.peaceful / _STATE).iterdir()}
        assert there == wanted, f"left over: {there - wanted}; missing: {wanted - there}"
        results = [_results(output) for output in (self.peaceful, self.disturbed)]
        states = [{target: (entry["result"], entry["hash"]) for target, entry in found.items()} for found in results]
        assert len(states[1]) == self.count and states[0] == states[1]
        assert sum(result == "failed" for result, _hash in states[1].values()) == self.broken

    def said(self) -> str:
        return (self.folder / "said.txt").read_text(encoding="utf-8", errors="replace")[-2000:]


def _make_library(folder: Path, count: int, *, with_bones: bool) -> int:
    """Write the library; return how many of its files are broken."""
    load_package()
    sys.path.append(str(ROOT / "tests" / "bench"))
    from meshbench import library

    made = library.make_library(folder, count, library.ALL if with_bones else library.MESHES)
    # Broken files with a generic extension are not recognised, so a batch would not find them.
    broken = [path for path in made[::_BROKEN_EVERY] if path.suffix != ".data"]
    for path in broken:
        path.write_bytes(path.read_bytes()[:60])
    return len(broken)


def _outputs(output: Path) -> dict[str, bytes]:
    """Return all files but the batch's own and those on their way, which no reader takes for models."""
    found = {}
    for path in output.rglob("*"):
        name = path.relative_to(output).as_posix()
        if path.is_file() and not name.startswith(_STATE) and ".part" not in name:
            found[name] = path.read_bytes()
    return found


def _results(output: Path) -> dict[str, dict[str, Any]]:
    """Return the results in the journal of an output folder by target."""
    _header, *lines = (output / _STATE / "journal.jsonl").read_text(encoding="ascii").splitlines()
    found = {entry["target"]: entry for entry in map(json.loads, lines)}
    assert len(found) == len(lines), "a target stands more than once in the journal"
    return found


def _children(driver: subprocess.Popen[bytes]) -> list[psutil.Process]:
    try:
        return psutil.Process(driver.pid).children()
    except psutil.Error:
        return []


def _kill(process: psutil.Process) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.kill()


def _is_running(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _fingerprints(output: Path) -> dict[str, str]:
    """Return what is in the .blend files of a folder, as hashes, by a process of its own."""
    command = [sys.executable, __file__, "--fingerprints", str(output)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=_TIMEOUT)
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def _print_fingerprints(output: Path) -> None:
    import bpy

    load_package().register()
    found = {}
    for path in sorted(output.rglob("*.blend")):
        bpy.ops.wm.open_mainfile(filepath=str(path), load_ui=False)
        digest = hashlib.blake2b(digest_size=16)
        for line in _content():
            digest.update(line if isinstance(line, bytes) else repr(line).encode() + b"\n")
        found[path.relative_to(output).as_posix()] = digest.hexdigest()
    load_package().unregister()
    print("\n" + json.dumps(found))


def _content() -> Iterator[Any]:
    """Say what is in the open file: data blocks, every number of meshes, bones and keys."""
    import bpy
    import numpy as np

    for obj in bpy.data.objects:
        yield obj.name, obj.type, obj.parent and obj.parent.name, obj.data and obj.data.name
        yield [list(row) for row in obj.matrix_world], [slot.name for slot in obj.material_slots]
        yield [group.name for group in obj.vertex_groups], [modifier.type for modifier in obj.modifiers]
        yield obj.meshferry.role, obj.meshferry.lod, [one.name for one in obj.users_collection]
    for mesh in bpy.data.meshes:
        yield mesh.name, [list(polygon.vertices) for polygon in mesh.polygons]
        yield [[(entry.group, entry.weight) for entry in vertex.groups] for vertex in mesh.vertices]
        for attribute in mesh.attributes:
            yield attribute.name, attribute.data_type, attribute.domain, len(attribute.data)
            if attribute.data_type in _VECTORS:
                values = np.empty(_VECTORS[attribute.data_type] * len(attribute.data), np.float32)
                attribute.data.foreach_get("vector", values)
                yield values.tobytes()
    for armature in bpy.data.armatures:
        yield armature.name, [(bone.name, [list(row) for row in bone.matrix_local]) for bone in armature.bones]
    for action in bpy.data.actions:
        yield action.name, list(action.frame_range)
    for obj in bpy.data.objects:
        for frame in (1, 7, 20) if obj.type == "ARMATURE" else ():
            bpy.context.scene.frame_set(frame)
            yield [[list(row) for row in bone.matrix] for bone in obj.pose.bones]
    yield [(material.name, list(material.diffuse_color)) for material in bpy.data.materials]
    yield [(one.name, sorted(obj.name for obj in one.objects)) for one in bpy.data.collections]


def run(folder: Path, kills: int, files: int, **options: Any) -> KilledBatch:
    """Kill a batch so many times; raise AssertionError where it does not end as it should."""
    killed = KilledBatch(folder, files, **options)
    killed.run(kills)
    killed.compare()
    return killed


def main(arguments: list[str] | None = None) -> int:
    """Run; an AssertionError names what was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--to", default="mesh", help="kind of file to write")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--driver", action="store_true", help="kill only the driver, not its workers")
    parser.add_argument("--fingerprints", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.fingerprints:
        _print_fingerprints(options.fingerprints)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        killed = run(
            Path(folder),
            options.kills,
            options.files,
            extension=options.to,
            seed=options.seed,
            only_driver=options.driver,
        )
    print(
        f"{killed.kills['driver']} kills of the driver and {killed.kills['worker']} of workers, {killed.restarts} "
        f"further runs: {len(killed.wanted)} files as without, {killed.broken} broken ones reported, none left over; "
        f"finished files converted again: 0; unfinished ones: {killed.rewritten}"
    )
    return 0


if __name__ == "__main__":
    leave(main())
