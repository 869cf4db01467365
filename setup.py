"""The parts of the package metadata that are computed: its version and its list of packages.

The root folder of the repository is the package itself, because Blender wants ``__init__.py`` beside the manifest.
Automatic discovery cannot map the root folder to a name.
"""

import tomllib
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
PARTS = ("blender_data", "cli", "io_formats", "library", "operators")


class BuildWithoutSetup(build_py):
    """Leave this module out, which stands in the folder of the root package."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        found: list[tuple[str, str, str]] = super().find_package_modules(package, package_dir)
        return [entry for entry in found if entry[1] != "setup"]


setup(
    cmdclass={"build_py": BuildWithoutSetup},
    version=tomllib.loads((ROOT / "blender_manifest.toml").read_text("utf-8"))["version"],
    package_dir={"meshferry": "."},
    packages=[
        "meshferry",
        *(f"meshferry.{name}" for name in find_packages(str(ROOT), include=[f"{part}*" for part in PARTS])),
    ],
)
