"""Settings of the documentation site: the guides, and the reference of library and formats from their docstrings."""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from load_package import load_package  # noqa: E402

load_package()

project = "Meshferry"
author = "Meshferry contributors"
project_copyright = "2026 Meshferry contributors"
release = tomllib.loads((ROOT / "blender_manifest.toml").read_text("utf-8"))["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
html_theme = "furo"
html_title = f"{project} {release}"
html_show_sphinx = False

# Several classes have fields with the same name, so a reference by name alone is ambiguous.
suppress_warnings = ["ref.python"]

myst_heading_anchors = 4
napoleon_google_docstring = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_default_options = {"members": True, "show-inheritance": True}

# Local addresses, and those that exist only after a version is published.
linkcheck_ignore = [r"https://extensions\.blender\.org/add-ons/meshferry/"]
