"""See that the wheel holds every module of the package and nothing else.

    python check_wheel.py meshferry-….whl

Needs nothing but Python. Started by scripts/run_packaged_tests.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("blender_data", "cli", "io_formats", "library", "operators")


def main() -> None:
    """Compare the wheel with the checkout."""
    wanted = {f"meshferry/{path.name}" for path in ROOT.glob("*.py")}
    wanted |= {f"meshferry/{name}" for name in ("__init__.pyi", "blender_manifest.toml", "py.typed")}
    wanted.remove("meshferry/setup.py")
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                wanted.add("meshferry/" + path.relative_to(ROOT).as_posix())
    with zipfile.ZipFile(sys.argv[1]) as wheel:
        there = {name for name in wheel.namelist() if ".dist-info/" not in name}
    if missing := wanted - there:
        raise SystemExit(f"FAILED: not in the wheel: {', '.join(sorted(missing))}")
    if strays := there - wanted:
        raise SystemExit(f"FAILED: in the wheel without need: {', '.join(sorted(strays))}")
    print(f"ok: {len(there)} files in the wheel, every module and nothing else")


if __name__ == "__main__":
    main()
