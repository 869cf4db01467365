"""Make a release: write the version to the manifest and the changelog, commit and tag.

    make release VERSION=0.2.0

Nothing is pushed: pushing the tag starts the workflow that builds the packages.
"""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MANIFEST = ROOT / "blender_manifest.toml"
CHANGELOG = ROOT / "CHANGELOG.md"


class ReleaseError(Exception):
    """A release that cannot be made."""


def git(*arguments: str) -> str:
    """Run git in the checkout and return its output."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


def new_manifest(text: str, version: str) -> str:
    """Return the manifest with another version, which must be later than the present one."""
    found = re.search(r'^version = "([^"]+)"$', text, re.MULTILINE)
    if not found:
        raise ReleaseError(f"{MANIFEST.name} has no version")
    if tuple(map(int, version.split("."))) <= tuple(map(int, found[1].split("."))):
        raise ReleaseError(f"{version} is not later than {found[1]}")
    return text[: found.start(1)] + version + text[found.end(1) :]


def new_changelog(text: str, version: str, date: dt.date) -> str:
    """Return the changelog with the unreleased section under the version, and an empty one above it."""
    head, mark, rest = text.partition("## [Unreleased]\n")
    section = rest.partition("\n## [")[0]
    if not mark or not section.strip():
        raise ReleaseError(f"{CHANGELOG.name} has no entries under [Unreleased]")
    return f"{head}{mark}\n## [{version}] - {date.isoformat()}\n{rest}"


def main(version: str) -> None:
    """Write, commit and tag."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ReleaseError("Name the version: make release VERSION=0.2.0")
    if git("status", "--porcelain", "--untracked-files=no"):
        raise ReleaseError("There are uncommitted changes")
    if git("tag", "--list", f"v{version}"):
        raise ReleaseError(f"The tag v{version} exists")
    manifest = new_manifest(MANIFEST.read_text("utf-8"), version)
    changelog = new_changelog(CHANGELOG.read_text("utf-8"), version, dt.datetime.now(dt.UTC).date())
    MANIFEST.write_text(manifest, "utf-8")
    CHANGELOG.write_text(changelog, "utf-8")
    git("add", MANIFEST.name, CHANGELOG.name)
    git("commit", "--quiet", "--message", f"Release {version}")
    git("tag", "--annotate", f"v{version}", "--message", f"Meshferry {version}")
    print(f"Committed and tagged v{version}; publish it with: git push --follow-tags")


if __name__ == "__main__":
    try:
        main(sys.argv[1] if len(sys.argv) > 1 else "")
    except ReleaseError as error:
        sys.exit(f"No release: {error}")
