"""Use the library where the wheel is installed beside NumPy alone: formats without another library work.

    python check_library.py EXAMPLES

Started by scripts/run_packaged_tests.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import meshferry


def main() -> None:
    """Read an example, and one whose format needs a library that is absent."""
    examples = Path(sys.argv[1])
    for library in ("google.protobuf", "llsd", "rich"):
        if importlib.util.find_spec(library.partition(".")[0]) is not None:
            raise SystemExit(f"FAILED: {library} is installed here")
    (mesh,) = meshferry.read(examples / "lamp.mesh").meshes
    if len(mesh.triangles) != 2300 or not (Path(meshferry.__file__).parent / "py.typed").is_file():
        raise SystemExit("FAILED: lamp.mesh is read wrong, or py.typed is missing")
    try:
        meshferry.read(examples / "windmill.timbermesh")
    except meshferry.MissingLibraryError as problem:
        print(f"ok: meshferry {meshferry.__version__} beside NumPy; {problem}")
    else:
        raise SystemExit("FAILED: a Timbermesh file was read without protobuf")


if __name__ == "__main__":
    main()
