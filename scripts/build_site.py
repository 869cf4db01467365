"""Build the documentation site into ``build/site``: README, guides, reference of library and formats (``make docs``).

The pages are copied with their folders, so that the links among them are the same as in the repository. A link that
leads nowhere and a reference that cannot be resolved are errors. ``--external`` also visits links to other sites.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from guide_pages import GUIDES
from messages_page import page

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "build" / "site-source"
SITE = ROOT / "build" / "site"

CONTENTS = """

```{toctree}
:hidden:
:caption: Guides

GUIDES
```

```{toctree}
:hidden:
:caption: Development

CONTRIBUTING
docs/developers/architecture
docs/developers/words
docs/developers/adding_a_format
docs/developers/unigine_testing
docs/developers/second_life_rfp
docs/formats/unigine
docs/formats/unigine_projects
docs/formats/unigine_textures
docs/formats/unigine_scenes
docs/formats/unigine_writing
docs/formats/timbermesh
docs/formats/timberborn_blueprints
docs/formats/second_life
docs/formats/second_life_animation
docs/formats/second_life_shapes
docs/formats/second_life_prims
docs/formats/opensim_archives
docs/formats/collada
docs/formats/mesh_serializer
api/index
CHANGELOG
```
""".replace("GUIDES", "\n".join(f"docs/{name}" for name in (*GUIDES, "users/messages")))


def module_names() -> list[str]:
    """Return the modules and packages of the library, and those of ``io_formats``, in alphabetical order."""
    names = []
    for path in (*(ROOT / "library").rglob("*.py"), *(ROOT / "io_formats").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return sorted(names, key=lambda name: (not name.startswith("library"), name))


def stage() -> None:
    """Copy the pages and write one page for each module, and one for all messages."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    SOURCE.mkdir(parents=True)
    for folder in ("docs", "examples"):
        shutil.copytree(ROOT / folder, SOURCE / folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for name in ("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"):
        shutil.copy(ROOT / name, SOURCE / name)
    (SOURCE / "docs" / "users" / "messages.md").write_text(page(), "utf-8")
    conversion = SOURCE / "docs" / "users" / "conversion.md"
    conversion.write_text(conversion.read_text("utf-8").replace("*Messages*", "[Messages](messages.md)"), "utf-8")
    (SOURCE / "README.md").write_text((ROOT / "README.md").read_text("utf-8") + CONTENTS, "utf-8")
    names = module_names()
    (SOURCE / "api").mkdir()
    for name in names:
        text = f"{name}\n{'=' * len(name)}\n\n.. automodule:: meshferry.{name}\n"
        (SOURCE / "api" / f"{name}.rst").write_text(text, "utf-8")
    index = ["Reference", "=========", "", "The library begins, its formats follow.", "", ".. toctree::", ""]
    (SOURCE / "api" / "index.rst").write_text("\n".join([*index, *(f"   {name}" for name in names), ""]), "utf-8")


def main() -> int:
    """Build the site; return the exit status of the builder."""
    parser = argparse.ArgumentParser(description="Build the documentation site")
    parser.add_argument("--external", action="store_true", help="also visit links to other sites")
    arguments = parser.parse_args()
    stage()
    shutil.rmtree(SITE, ignore_errors=True)
    status = 0
    for builder, folder in (("html", SITE), *([("linkcheck", ROOT / "build" / "links")] if arguments.external else [])):
        command = (
            sys.executable,
            "-m",
            "sphinx",
            "-b",
            builder,
            "-W",
            "--keep-going",
            "-q",
            "-c",
            ROOT / "scripts/site",
        )
        status = subprocess.run([*map(str, command), str(SOURCE), str(folder)], check=False).returncode or status
    if status == 0:
        print(f"{SITE.relative_to(ROOT)}/README.html")
    return status


if __name__ == "__main__":
    sys.exit(main())
