"""The tables in docs that are made of the code's own tables, so that they cannot go stale.

    .venv/bin/python tests/examples/generated_tables.py     puts them in place

A table stands between ``<!-- name: … -->`` and ``<!-- /name -->``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from meshferry.blender_data.exporting.export_options import EXPORT_OPTIONS
from meshferry.blender_data.importing.import_options import IMPORT_OPTIONS
from meshferry.io_formats.core.capabilities import ANY_NUMBER, Capabilities
from meshferry.io_formats.core.format import Format
from meshferry.io_formats.core.options import Option, applicable
from meshferry.io_formats.mesh_serializer.formats import MESH_SERIALIZER
from meshferry.io_formats.registry import FORMATS
from meshferry.io_formats.second_life.formats import (
    OPENSIM_ARCHIVE,
    SECOND_LIFE_ANIMATION,
    SECOND_LIFE_BUNDLE,
    SECOND_LIFE_BVH,
    SECOND_LIFE_COLLADA,
    SECOND_LIFE_MESH,
    SECOND_LIFE_UPLOAD,
)
from meshferry.io_formats.second_life.options import SERVER
from meshferry.io_formats.timbermesh.formats import TIMBERMESH
from meshferry.io_formats.unigine.formats import UNIGINE_ANIMATION, UNIGINE_MESH, UNIGINE_SCENE, UNIGINE_SKELETON

ROOT = Path(__file__).resolve().parent.parent.parent
CARRIES = {
    "normals": "Split normals",
    "uv_layers": "UV maps",
    "color_layers": "Vertex colours",
    "custom_layers": "Other vertex attributes",
    "splits_vertices": "",
    "materials": "Materials",
    "project_textures": "Textures of the project or archive (import)",
    "ambient_occlusion": "Maps of ambient occlusion (import)",
    "gltf_materials": "PBR materials",
    "surfaces": "Slots of one material kept apart",
    "node_hierarchy": "Hierarchy of objects",
    "node_clips": "Object animation",
    "vertex_clips": "Vertex animation",
    "shape_keys": "Shape keys",
    "skeletons": "Armatures",
    "sliders": "Body shapes",
    "influences": "Weights a vertex",
    "joint_clips": "Bone animation",
    "keyed_clips": "",
    "longest_clip": "",
    "levels_of_detail": "Levels of detail",
    "physics": "Physics shapes",
    "lod_models": "",
    "meshes": "",
    "placement": "Models of other files",
    "opaque_colors": "",
    "joins_objects": "",
    "joins_clips": "",
    "knows_joint": "",
}
"""Each field of a format's capabilities, as artists call it (empty: of no concern to them), in the table's order."""


def formats_table() -> str:
    """Return what each format carries."""
    rows = [
        ["", *(f"**{known.label}**" for known in FORMATS)],
        ["Files", *(", ".join(f"`{extension}`" for extension in known.extensions) for known in FORMATS)],
        ["Direction", *map(_direction, FORMATS)],
    ]
    assert {field.name for field in fields(Capabilities)} == set(CARRIES), "a capability is missing in CARRIES"
    for name, label in CARRIES.items():
        amounts = [getattr(known.capabilities, name) for known in FORMATS]
        if label and any(amounts):
            rows.append([label, *map(_amount, amounts)])
    return _table(rows)


def _direction(known: Format) -> str:
    return " and ".join(["import"] * known.is_read + ["export"] * known.is_written)


def _amount(value: bool | int) -> str:
    if isinstance(value, bool):
        return "yes" if value else "–"
    return ("any number" if value >= ANY_NUMBER else str(value)) if value else "–"


def import_table(*formats: Format) -> str:
    """Return the options of an import of these formats."""
    own = (option for known in formats for option in known.import_options)
    return _options(dict.fromkeys((*applicable(IMPORT_OPTIONS, (known.capabilities for known in formats)), *own)))


def export_table(target: Format) -> str:
    """Return the options of an export to a format."""
    return _options((*applicable(EXPORT_OPTIONS, [target.capabilities]), *target.export_options))


def _options(options: Iterable[Option]) -> str:
    rows = [["Option", "On the command line", "What it does"]]
    for option in options:
        flag = "--" + option.name.removeprefix("use_").replace("_", "-")
        flag = f"`{flag}`, `--no-{flag[2:]}`" if isinstance(option.default, bool) else f"`{flag}`"
        text = option.description
        if option.choices:
            text += "".join(f"<br>*{choice.label}*: {choice.description}" for choice in option.choices)
        text += f"<br>Default: {_default(option, headless=False)}"
        if option.headless_default is not None:
            text += f"; on the command line: {_default(option, headless=True)}"
        rows.append([f"{option.section}: **{option.label}**", flag, text])
    return _table(rows)


def _default(option: Option, *, headless: bool) -> str:
    value: Any = option.default_for(headless=headless)
    if isinstance(value, bool):
        return "on" if value else "off"
    for choice in option.choices:
        if choice.key == value:
            return f"*{choice.label}*"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if value != "" else "empty"


def _table(rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


TABLES: dict[tuple[str, str], Callable[[], str]] = {
    ("docs/formats.md", "formats"): formats_table,
    ("docs/timbermesh.md", "import options"): lambda: import_table(TIMBERMESH),
    ("docs/timbermesh.md", "export options"): lambda: export_table(TIMBERMESH),
    ("docs/unigine.md", "import options"): lambda: import_table(
        UNIGINE_MESH, UNIGINE_ANIMATION, UNIGINE_SKELETON, UNIGINE_SCENE
    ),
    ("docs/unigine.md", "mesh export options"): lambda: export_table(UNIGINE_MESH),
    ("docs/unigine.md", "animation export options"): lambda: export_table(UNIGINE_ANIMATION),
    ("docs/unigine_projects.md", "scene export options"): lambda: export_table(UNIGINE_SCENE),
    ("docs/second_life.md", "import options"): lambda: import_table(
        SECOND_LIFE_MESH, SECOND_LIFE_BUNDLE, SECOND_LIFE_COLLADA, SECOND_LIFE_ANIMATION, SECOND_LIFE_BVH
    ),
    ("docs/second_life.md", "export options"): lambda: export_table(SECOND_LIFE_UPLOAD),
    ("docs/second_life.md", "request options"): lambda: _options((SERVER,)),
    ("docs/second_life_animation.md", "export options"): lambda: export_table(SECOND_LIFE_ANIMATION),
    ("docs/opensim_regions.md", "import options"): lambda: import_table(OPENSIM_ARCHIVE),
    ("docs/mesh_serializer.md", "import options"): lambda: import_table(MESH_SERIALIZER),
    ("docs/mesh_serializer.md", "export options"): lambda: export_table(MESH_SERIALIZER),
}
"""File and name of a table, and what makes it."""


def with_table(text: str, name: str, table: str) -> str:
    """Return a page with its table of that name renewed."""
    found = re.search(rf"(<!-- {name}: [^\n]*-->\n).*?(<!-- /{name} -->)", text, re.DOTALL)
    assert found is not None, f"there is no place for the table '{name}'"
    return text[: found.end(1)] + table + "\n" + text[found.start(2) :]


def main() -> None:
    """Put all tables in place."""
    for (page, name), make in TABLES.items():
        path = ROOT / page
        path.write_text(with_table(path.read_text("utf-8"), name, make()), "utf-8")
        print(f"{page}: {name}")


if __name__ == "__main__":
    main()
