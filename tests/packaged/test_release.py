"""What `make release` writes into the manifest and the changelog."""

from __future__ import annotations

import datetime as dt
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_release", ROOT / "scripts" / "make_release.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_version_must_grow_and_replaces_only_that_of_the_extension(release: ModuleType) -> None:
    manifest = 'schema_version = "1.0.0"\nversion = "0.9.0"\nblender_version_min = "4.5.0"\n'
    assert release.new_manifest(manifest, "0.10.0") == manifest.replace("0.9.0", "0.10.0")
    for version in ("0.9.0", "0.8.12"):
        with pytest.raises(release.ReleaseError, match="not later than"):
            release.new_manifest(manifest, version)


def test_unreleased_entries_get_the_version_and_the_date(release: ModuleType) -> None:
    changelog = "# Changelog\n\n## [Unreleased]\n\n- New.\n\n## [0.1.0] - 2026-11-20\n\n- Old.\n"
    written = release.new_changelog(changelog, "0.2.0", dt.date(2026, 12, 1))
    assert written == changelog.replace("## [Unreleased]\n", "## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n")
    with pytest.raises(release.ReleaseError, match="no entries"):
        release.new_changelog(written, "0.3.0", dt.date(2026, 12, 2))
