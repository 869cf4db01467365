"""Peer of a batch from format to format: one Python that reads each file of a folder tree and writes it as .mesh.

It calls the same functions of ``io_formats`` as a worker: read, fit to what the format holds, encode, write. It has no
plan, journal, checksums, facts, isolation of crashes, or time limits.

python tests/bench/meshbench/api_loop.py SOURCE OUTPUT [START STEP]

With START and STEP, only the files with these indices are converted, as by one of several workers.
"""

from __future__ import annotations

import sys
from pathlib import Path

EXTENSION = ".mesh"


def main(source: Path, output: Path, start: int = 0, step: int = 1) -> None:
    """Convert every ``step``-th file below ``source`` into the same folder tree below ``output``."""
    from meshferry.io_formats import api, registry
    from meshferry.io_formats.disk.atomic_write import make_folder, replace_file
    from meshferry.io_formats.passes.flatten import fit

    for path in sorted(file for file in source.rglob("*") if file.is_file())[start::step]:
        scene = api.read_scene(path)
        target = registry.of_same_family(registry.by_name("unigine_mesh"), EXTENSION, scene.format)
        fit(scene, target.capabilities, registry.by_name(scene.format).capabilities)
        made = (output / path.relative_to(source)).with_suffix(EXTENSION)
        make_folder(made.parent)
        for part in api.files_of(scene, target):
            part.warnings = []
            encoded = api.encode_part(part, target, path=made)
            replace_file(made, encoded.outputs[-1].data, is_flushed=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:]))
