"""Build the Blender extension packages, one for each platform, and the wheel and source distribution for pip.

Run with a Python that has bpy (``make package``). Writes ``build/packages/meshferry-<version>-<platform>.zip``, which
Blender's own tool validates, and the files for pip, which twine checks.

Every platform gets its own manifest, since its package contains a different protobuf wheel: a binary one, or on Windows
for ARM, where there is none, a pure Python one. A package with both would not work: Blender prefers the pure one, which
parses about a hundred times slower.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

from guide_pages import GUIDES, write_pages

ROOT = Path(__file__).resolve().parent.parent
STAGES = ROOT / "build" / "stage"
PACKAGES = ROOT / "build" / "packages"
LOCK = ROOT / "scripts" / "wheels.lock"
STARTING_FILE = "operators/families/second_life/starting_file.blend"
OLDEST_BLENDER = "4.5"

PLATFORMS = {
    "linux-x64": "manylinux2014_x86_64",
    "windows-x64": "win_amd64",
    "windows-arm64": "win_arm64",
    "macos-x64": "macosx_11_0_x86_64",
    "macos-arm64": "macosx_11_0_arm64",
}
"""Blender's names of the platforms -> pip's names."""

SHIPPED = {
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "__init__.py",
    "__init__.pyi",
    "__main__.py",
    "blender_data",
    "blender_manifest.toml",
    "cli",
    "docs",
    "examples",
    "io_formats",
    "library",
    "operators",
    "py.typed",
    "translations",
    "wheels",
}
"""The allowed top-level entries of a package. Any other is a stray file that the manifest does not exclude yet."""

OLDEST_PYTHON = "3.11"
TIMESTAMP = 1_700_000_000
"""Modification time of all staged files, so that the same content gives the same package."""


class PackagingError(Exception):
    """A package that must not be published."""


def find_blender() -> Path:
    """Return the folder of the bpy module of this Python."""
    spec = importlib.util.find_spec("bpy")
    if spec is None or spec.origin is None:
        raise PackagingError("This Python has no bpy module: run `make package`")
    return Path(spec.origin).parent


def find_extension_tool() -> Path:
    """Return Blender's extension tool, which is installed beside the bpy module of this Python."""
    found = sorted(find_blender().glob("*/scripts/addons_core/bl_pkg/cli/blender_ext.py"))
    if not found:
        raise PackagingError(f"No extension tool in {find_blender()}")
    return found[-1]


def run(*command: str | Path, **variables: str) -> None:
    """Run a command with further environment variables; its output is shown only when it fails."""
    done = subprocess.run(
        [*map(str, command)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )
    if done.returncode != 0:
        raise PackagingError(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


def download_wheels(platform: str, folder: Path) -> list[str]:
    """Download the locked wheels for a platform into a folder; return their names, sorted."""
    run(
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"),
        *("--no-deps", "--only-binary=:all:", "--require-hashes", "--requirement", LOCK, "--dest", folder),
        *("--python-version", OLDEST_PYTHON, "--platform", PLATFORMS[platform]),
    )
    return sorted(wheel.name for wheel in folder.glob("*.whl"))


def platform_manifest(manifest: str, platform: str, wheels: list[str]) -> str:
    """Return the manifest with the platform and its wheels, which belong before the first table."""
    lines = [f'platforms = ["{platform}"]', "wheels = [", *(f'  "./wheels/{wheel}",' for wheel in wheels), "]"]
    head, table, rest = manifest.partition("\n[")
    return "\n".join([head.rstrip(), "", *lines, ""]) + table + rest


def make_starting_file(place: Path) -> None:
    """Make the file of File > New with the oldest Blender, since an older one could not open it."""
    python = Path(sys.executable)
    if not (find_blender() / OLDEST_BLENDER).is_dir():
        environment = ROOT / ".venvs" / f"bpy-{OLDEST_BLENDER}"
        run(ROOT / "scripts" / "create_environment", environment, OLDEST_BLENDER)
        python = environment / "bin" / "python"
    place.parent.mkdir(parents=True, exist_ok=True)
    # Blender stores the home folder in each file.
    run(python, ROOT / "examples" / "make_starting_file.py", place, HOME="/")


def stage(platform: str, starting_file: Path) -> Path:
    """Copy the checkout into a clean folder; add what is made for packages: manifest, wheels, starting file, pages."""
    folder = STAGES / platform
    shutil.rmtree(folder, ignore_errors=True)

    def skip(directory: str, names: list[str]) -> set[str]:
        # Skip only large folders here; the manifest decides what is shipped.
        at_root = Path(directory) == ROOT
        return {n for n in names if n == "__pycache__" or (at_root and (n == "build" or n.startswith(".")))}

    shutil.copytree(ROOT, folder, ignore=skip)
    shutil.copyfile(starting_file, folder / STARTING_FILE)
    write_pages(folder / "docs")
    wheels = download_wheels(platform, folder / "wheels")
    manifest = folder / "blender_manifest.toml"
    manifest.write_text(platform_manifest(manifest.read_text("utf-8"), platform, wheels), "utf-8")
    for path in folder.rglob("*"):
        os.utime(path, (TIMESTAMP, TIMESTAMP))
    return folder


def check_content(package: Path) -> None:
    """Raise an error for a package without files that are made for it, or with files that do not belong to it."""
    with zipfile.ZipFile(package) as archive:
        names = archive.namelist()
    for made in (STARTING_FILE, *(f"docs/{name}.html" for name in GUIDES)):
        if made not in names:
            raise PackagingError(f"{package.name} lacks {made}")
    strays = {name for name in names if name.split("/")[0] not in SHIPPED}
    if strays:
        raise PackagingError(f"{package.name} contains files that do not belong into it:{', '.join(sorted(strays))}")


def build_distributions() -> None:
    """Build the wheel and the source distribution for pip, and check their metadata."""
    environment = ROOT / ".venvs" / "package"
    run(ROOT / "scripts" / "create_environment", environment, "package")
    python = environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    run(python, "-m", "build", "--outdir", PACKAGES, ROOT)  # the wheel from the unpacked source distribution
    made = sorted([*PACKAGES.glob("*.whl"), *PACKAGES.glob("*.tar.gz")])
    run(python, "-m", "twine", "check", "--strict", *made)
    for path in made:
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size:,} bytes", flush=True)


def main() -> int:
    """Build and validate every package."""
    tool = find_extension_tool()
    version = tomllib.loads((ROOT / "blender_manifest.toml").read_text("utf-8"))["version"]
    shutil.rmtree(PACKAGES, ignore_errors=True)
    PACKAGES.mkdir(parents=True)
    run(sys.executable, tool, "validate", ROOT)
    starting_file = ROOT / "build" / "starting_file.blend"
    make_starting_file(starting_file)
    for platform in PLATFORMS:
        folder = stage(platform, starting_file)
        package = PACKAGES / f"meshferry-{version}-{platform}.zip"
        run(sys.executable, tool, "build", "--source-dir", folder, "--output-filepath", package)
        run(sys.executable, tool, "validate", package)
        check_content(package)
        wheels = ", ".join(path.name for path in sorted((folder / "wheels").iterdir()))
        print(f"{package.relative_to(ROOT)}  {package.stat().st_size:,} bytes  {wheels}", flush=True)
    build_distributions()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except PackagingError as error:
        sys.exit(f"packaging failed: {error}")
