"""The package metadata for pip and Blender agree, and no part of the package is missing."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = tomllib.loads((ROOT / "blender_manifest.toml").read_text("utf-8"))


def test_manifest_keeps_the_rules_of_the_extensions_platform() -> None:
    assert MANIFEST["id"].isidentifier()
    assert len(MANIFEST["tagline"]) <= 64
    assert not MANIFEST["tagline"].endswith(".")
    assert not MANIFEST["permissions"]["files"].endswith(".")
    assert "wheels" not in MANIFEST, "scripts/package_extension.py writes the wheels of each platform"
