"""The tables in docs that are made of the code's own tables, so that they cannot go stale.

    .venv/bin/python tests/examples/generated_tables.py     puts them in place

A table stands between ``<!-- name: … -->`` and ``<!-- /name -->``.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from meshferry.blender_data.export_options import EXPORT_OPTIONS
from meshferry.blender_data.importing.import_options import IMPORT_OPTIONS
from meshferry.io_formats.core.capabilities import ANY_NUMBER, Capabilities
from meshferry.io_formats.core.format import Format
from meshferry.io_formats.core.options import Option, applicable
from meshferry.io_formats.mesh_serializer.format import MESH_SERIALIZER
from meshferry.io_formats.registry import FORMATS
from meshferry.io_formats.second_life.animation.format import SECOND_LIFE_ANIMATION
from meshferry.io_formats.second_life.asset.format import SECOND_LIFE_MESH
from meshferry.io_formats.second_life.bundle.format import SECOND_LIFE_BUNDLE
from meshferry.io_formats.second_life.bvh.format import SECOND_LIFE_BVH
from meshferry.io_formats.second_life.collada.format import SECOND_LIFE_COLLADA
from meshferry.io_formats.second_life.opensim.format import OPENSIM_ARCHIVE
from meshferry.io_formats.second_life.request.format import SECOND_LIFE_REQUEST
from meshferry.io_formats.second_life.upload_set.format import SECOND_LIFE_UPLOAD
from meshferry.io_formats.timbermesh.model.format import TIMBERMESH
from meshferry.io_formats.unigine.animation.format import UNIGINE_ANIMATION
from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH
from meshferry.io_formats.unigine.scene.format import UNIGINE_SCENE
from meshferry.io_formats.unigine.skeleton.format import UNIGINE_SKELETON

ROOT = Path(__file__).resolve().parent.parent.parent
CARRIES = {
    "normals": "split normals",
    "uv_layers": "UV maps",
    "color_layers": "vertex colours",
    "custom_layers": "other vertex attributes",
    "splits_vertices": "",
    "tangents": "",
    "materials": "materials",
    "project_textures": "textures of the project or archive (import)",
    "ambient_occlusion": "maps of ambient occlusion (import)",
    "gltf_materials": "PBR materials",
    "surfaces": "slots of one material kept apart",
    "node_hierarchy": "hierarchy of objects",
    "node_clips": "object animation",
    "vertex_clips": "vertex animation",
    "shape_keys": "shape keys",
    "skeletons": "armatures",
    "sliders": "body shapes",
    "influences": "weights a vertex",
    "joint_clips": "bone animation",
    "keyed_clips": "",
    "longest_clip": "",
    "levels_of_detail": "levels of detail",
    "physics": "physics shapes",
    "lod_models": "",
    "meshes": "",
    "placement": "models of other files",
    "opaque_colors": "",
    "bakes_materials": "",
    "joins_objects": "",
    "joins_clips": "",
    "knows_joint": "",
}
"""Each field of a format's capabilities, as artists call it (empty: of no concern to them), in the table's order."""


def formats_table() -> str:
    """Return the files of each format, and what they carry."""
    assert {field.name for field in fields(Capabilities)} == set(CARRIES), "a capability is missing in CARRIES"
    rows = [["Format", "Files", "Direction", "Holds"]]
    for known in FORMATS:
        files = ", ".join(f"`{extension}`" for extension in known.extensions)
        amounts = {label: getattr(known.capabilities, name) for name, label in CARRIES.items() if label}
        holds = ", ".join(label + _amount(amount) for label, amount in amounts.items() if amount)
        rows.append([f"**{known.label}**", files, _direction(known), holds[:1].upper() + holds[1:]])
    return _table(rows)


def _direction(known: Format) -> str:
    return " and ".join(["import"] * known.is_read + ["export"] * known.is_written)


def _amount(value: bool | int) -> str:
    return "" if isinstance(value, bool) else " (any number)" if value >= ANY_NUMBER else f" ({value})"


def import_options(*formats: Format) -> list[Option]:
    """Return the options of an import of these formats."""
    own = (option for known in formats for option in known.import_options.table())
    return list(dict.fromkeys((*applicable(IMPORT_OPTIONS, (known.capabilities for known in formats)), *own)))


def export_options(target: Format) -> list[Option]:
    """Return the options of an export to a format."""
    return [*applicable(EXPORT_OPTIONS, [target.capabilities]), *target.export_options.table()]


def shared(tables: dict[tuple[str, str], list[Option]]) -> list[Option]:
    """Return the options that several of these tables have, in the order of their first table."""
    counted = Counter(option for options in tables.values() for option in options)
    return [option for option, number in counted.items() if number > 1]


def own_table(options: list[Option], common: list[Option]) -> str:
    """Return the table of a guide: options of its own in full, shared ones by name."""
    own = [option for option in options if option not in common]
    names = ", ".join(f"*{option.label}*" for option in options if option in common)
    sentence = textwrap.fill(f"[Shared options]({SHARED_OPTIONS}): {names}.", 120, break_on_hyphens=False)
    return "\n\n".join([*([_options(own)] if own else []), sentence]) + "\n"


def _options(options: Iterable[Option]) -> str:
    rows = [["Option", "On the command line", "What it does"]]
    for option in options:
        flag = "--" + option.keyword.replace("_", "-")
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


def messages_table() -> str:
    """Return all codes of messages with their kinds and the sentences that they stand for."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for path in (path for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py"))):
        tree = ast.parse(path.read_text("utf-8"))
        for table in (node for node in ast.walk(tree) if isinstance(node, ast.Tuple) and node.elts):
            code, *texts = [text for value in (table.elts[0], *table.elts) for text in literals(value)] or [""]
            templates = [text for text in texts if "{}" in text]
            if CODE.fullmatch(code) and templates:
                kinds, sentences = found.setdefault(code, (set(), set()))
                kinds.update(
                    [value.attr.lower() for value in table.elts if isinstance(value, ast.Attribute)] or ["loss"]
                )
                sentences.update(templates)
        for function in ast.walk(tree):
            for call in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
                if isinstance(call, ast.Call) and len(call.args) > 1:
                    kind = getattr(call.func, "attr", getattr(call.func, "id", ""))
                    for code in literals(call.args[0]) if kind in KINDS else ():
                        if CODE.fullmatch(code):
                            kinds, sentences = found.setdefault(code, (set(), set()))
                            kinds.add(kind.removesuffix("_of") if kind != "report" else "warning")
                            sentences.update(_templates(call, function))
    rows = [["Code", "Kind", "Sentence"], ["---"] * 3]
    for code, (kinds, sentences) in sorted(found.items()):
        texts = " / ".join(sorted(sentence.replace("|", r"\|").strip() for sentence in sentences))
        rows.append([f"`{code}`", ", ".join(sorted(kinds)), texts])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _templates(call: ast.Call, function: ast.FunctionDef) -> Iterator[str]:
    """Yield the templates of a message: literals, or those that a variable was given last before the call."""
    value = call.args[1]
    given: list[tuple[int, ast.expr]] = []
    for node in ast.walk(function) if isinstance(value, ast.Name) else ():
        if isinstance(node, ast.Assign) and node.lineno < call.lineno:
            target, source = node.targets[0], node.value
            pairs = [(target, source)]
            if isinstance(target, ast.Tuple) and isinstance(source, ast.Tuple):
                pairs = list(zip(target.elts, source.elts, strict=True))
            given += [(node.lineno, text) for name, text in pairs if getattr(name, "id", "") == value.id]
    yield from literals(max(given, key=lambda pair: pair[0])[1] if given else value)


SHARED_OPTIONS = "import_and_export.md#options"

IMPORTS: dict[tuple[str, str], list[Option]] = {
    ("docs/users/timbermesh.md", "import options"): import_options(TIMBERMESH),
    ("docs/users/unigine.md", "import options"): import_options(
        UNIGINE_MESH, UNIGINE_ANIMATION, UNIGINE_SKELETON, UNIGINE_SCENE
    ),
    ("docs/users/second_life.md", "import options"): import_options(
        SECOND_LIFE_MESH, SECOND_LIFE_BUNDLE, SECOND_LIFE_COLLADA, SECOND_LIFE_ANIMATION, SECOND_LIFE_BVH
    ),
    ("docs/users/opensim_regions.md", "import options"): import_options(OPENSIM_ARCHIVE),
    ("docs/users/mesh_serializer.md", "import options"): import_options(MESH_SERIALIZER),
}
EXPORTS: dict[tuple[str, str], list[Option]] = {
    ("docs/users/timbermesh.md", "export options"): export_options(TIMBERMESH),
    ("docs/users/unigine.md", "mesh export options"): export_options(UNIGINE_MESH),
    ("docs/users/unigine.md", "animation export options"): export_options(UNIGINE_ANIMATION),
    ("docs/users/unigine_projects.md", "scene export options"): export_options(UNIGINE_SCENE),
    ("docs/users/second_life.md", "export options"): export_options(SECOND_LIFE_UPLOAD),
    ("docs/users/second_life_animation.md", "export options"): export_options(SECOND_LIFE_ANIMATION),
    ("docs/users/mesh_serializer.md", "export options"): export_options(MESH_SERIALIZER),
}

TABLES: dict[tuple[str, str], Callable[[], str]] = {
    ("docs/users/formats.md", "formats"): formats_table,
    ("docs/users/import_and_export.md", "import options"): lambda: _options(shared(IMPORTS)),
    ("docs/users/import_and_export.md", "export options"): lambda: _options(shared(EXPORTS)),
    **{
        key: partial(own_table, options, shared(tables))
        for tables in (IMPORTS, EXPORTS)
        for key, options in tables.items()
    },
    ("docs/users/second_life.md", "request options"): lambda: _options(SECOND_LIFE_REQUEST.export_options.table()[:1]),
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
