"""What pip and Blender are told about the package agrees, and no part of it is forgotten."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
MANIFEST = tomllib.loads((ROOT / "blender_manifest.toml").read_text("utf-8"))


def test_one_version() -> None:
    assert PROJECT["project"]["version"] == MANIFEST["version"]


def test_every_package_is_listed_for_pip() -> None:
    folders = [
        path.parent
        for top in ("blender_data", "cli", "io_formats", "operators")
        for path in (ROOT / top).rglob("__init__.py")
    ]
    names = {"meshferry", *("meshferry." + ".".join(folder.relative_to(ROOT).parts) for folder in folders)}
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == names


def test_manifest_keeps_the_rules_of_the_extensions_platform() -> None:
    assert MANIFEST["id"].isidentifier()
    assert len(MANIFEST["tagline"]) <= 64
    assert not MANIFEST["tagline"].endswith(".")
    assert not MANIFEST["permissions"]["files"].endswith(".")
    assert "wheels" not in MANIFEST, "scripts/package_extension.py writes the wheels of each platform"
