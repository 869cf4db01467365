"""Hostile UNIGINE projects: a case is several small files that refer to each other, behind one another."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import raw

MAGIC = b"files of a project\n"
"""Start of a case, which no file of a format has."""
_GUIDS = [f"{number:02x}" + f"{number:038x}" for number in range(8)]
_WORDS = ("albedo", "normal", "shading", "emission", "roughness", "albedo_color", "uv_transform", "transparent", "x y")
_VALUES = ("1", "0 0 0 1", "nan", "1e999", "-1", "", "vec4(1.0f,2,3,4)", "sin(x)", "1 1 0 0", "\u0663", "9" * 400)
_BASES = ("mesh_base", "Unigine::mesh_base", "mesh", "d", "")
_PATHS = (
    "a.mat",
    "t.png",
    "../x.mat",
    "x.fbx/y.mesh",
    "D:/data/t.png",
    "core/white.texture",
    "asset://t.png",
    "\\\\s\\t",
)


def reference(rng: random.Random) -> str:
    """Return a reference in any form."""
    found = rng.choice((*_GUIDS, *_GUIDS, *_PATHS, *_BASES))
    return f"guid://{found}" if rng.random() < 0.3 else found


def _mat(rng: random.Random) -> str:
    parts = []
    for _ in range(rng.randrange(6)):
        kind, name = rng.choice(("texture", "parameter", "state", "options", "blend", "odd")), rng.choice(_WORDS)
        text = reference(rng) if kind == "texture" else rng.choice(_VALUES)
        more = rng.choice(("", ' expression="1"', ' wrap="clamp"', ' use_expression="0"'))
        child = "<curve2d/>" if rng.random() < 0.05 else ""
        parts.append(f'<{kind} name="{name}"{more}>{text}{child}</{kind}>')
    attributes = "".join(
        f' {key}="{reference(rng)}"' for key in ("guid", "parent", "parent_name", "base_material") if rng.random() < 0.5
    )
    body = f"<material{attributes}>{''.join(parts)}</material>"
    if rng.random() < 0.2:
        body = f"<materials>{body}<material name='n{rng.randrange(3)}' parent='n{rng.randrange(3)}'/></materials>"
    return ('<!DOCTYPE a [<!ENTITY b "c">]>' if rng.random() < 0.02 else "") + body


def _meta(rng: random.Random) -> str:
    runtimes = "".join(
        f'<runtime id="{rng.choice(_GUIDS)}" name="{rng.choice(_PATHS)}" link="{rng.choice("0012x")}"/>'
        for _ in range(rng.randrange(4))
    )
    materials = rng.choice(",,,;").join(f"{rng.choice(_WORDS)},{reference(rng)}" for _ in range(rng.randrange(3)))
    root = "asset" if rng.random() < 0.95 else "x"
    return (
        f"<{root}><guid>{rng.choice(_GUIDS)}</guid><type>fbx</type><runtimes>{runtimes}"
        f'</runtimes><parameters><parameter name="material_guids">{materials}</parameter>'
        f'<parameter name="invert_g">{rng.choice("01x")}</parameter></parameters></asset>'
    )


def _json(rng: random.Random, depth: int = 0) -> Any:
    """Return any value of JSON."""
    choice = rng.randrange(7 if depth < 3 else 4)
    if choice > 4:
        return {rng.choice((*_GUIDS, *_WORDS, "asset", "alias")): _json(rng, depth + 1) for _ in range(3)}
    return [_json(rng, depth + 1)] if choice == 4 else (reference(rng), 1, None, 1e308)[choice]


def _runtime_meta(rng: random.Random) -> str:
    found = {"asset": rng.choice(_GUIDS), "alias": rng.choice(_PATHS)} if rng.random() < 0.95 else _json(rng)
    return json.dumps(found)


def _table(rng: random.Random) -> str:
    names = ("a.mat", "t.png", "g.mgraph", "x.fbx", "A.MAT", "nothing.png", "t.png.meta")
    return json.dumps({guid: rng.choice(names) for guid in _GUIDS} if rng.random() < 0.95 else _json(rng))


def _basemat(rng: random.Random) -> str:
    lines = [
        rng.choice(
            (
                f'Texture2D "{rng.choice((*_WORDS, *_GUIDS))}"="{reference(rng)}" <wrap=[clamp_x {rng.choice("xy")} ]>',
                f'Color "{rng.choice(_WORDS)}"=[{rng.choice(_VALUES)}]< >',
                f"Slider {rng.choice(_WORDS)}={rng.choice(_VALUES)}",
                f"Option {rng.choice(('transparent', 'two_sided', 'blend_src5', 'x'))} = {rng.choice(_WORDS)}",
                "State emission = true",
                "#{ void main() {} #}",
                "=" * rng.randrange(2000),
                "Option transparent" + " " * rng.randrange(2000),
            )
        )
        for _ in range(rng.randrange(12))
    ]
    return f"//ver=2 BaseMaterial< parent=Unigine::{rng.choice(_BASES)} guid={rng.choice(_GUIDS)} >{{\n" + "\n".join(
        lines
    )


def _graph(rng: random.Random) -> str:
    def node() -> str:
        kind = rng.choice(("Texture2D", "Texture2D", "Material", "Expression"))
        props = f'{{"prop": {{"asset": "{reference(rng)}"}}, "prop": {json.dumps(_json(rng, 2))}}}'
        inner = f'{{"guid": "n{rng.randrange(4)}", "props": {rng.choice((props, f"[{props}]", "[]", "null"))}}}'
        return f'"{kind}": {inner}'

    def anchor() -> str:
        start, end = rng.randrange(4), rng.randrange(4)
        return f'"anchor": {{"output_node": "n{start}", "input_node": "n{end}", "input_label": "{rng.choice(_WORDS)}"}}'

    nodes = ",".join(node() for _ in range(rng.randrange(6)))
    anchors = ",".join(anchor() for _ in range(rng.randrange(8)))
    text = f'{{"nodes": [{{{nodes}}}], "anchors": [{{{anchors}}}]}}'.replace("\\\\s\\t", "s")
    return text if rng.random() < 0.95 else json.dumps(_json(rng))


def _node(rng: random.Random) -> str:
    surface = f'<surface name="Face" material="{reference(rng)}"/>'
    return f"<nodes><node><mesh_name>{reference(rng)}</mesh_name>{surface}</node></nodes>"


def _runtime(guid: str, extension: str) -> str:
    return f".runtimes/{guid[:2]}/{guid}.{extension}"


_FILES: tuple[tuple[str, Callable[[random.Random], str]], ...] = (
    ("a.mat", _mat),
    ("lib/b.mat", _mat),
    ("C.mat", _mat),
    ("a.mat.meta", _meta),
    ("t.png", str),
    ("t.png.meta", _meta),
    ("x.fbx.meta", _meta),
    ("g.mgraph", _graph),
    ("g.mgraph.meta", _meta),
    (_runtime(_GUIDS[1], "basemat"), _basemat),
    (_runtime(_GUIDS[1], "basemat.meta"), _runtime_meta),
    (_runtime(_GUIDS[2], "texture"), str),
    (_runtime(_GUIDS[2], "texture.meta"), _runtime_meta),
    (_runtime(_GUIDS[3], "mesh"), str),
    (_runtime(_GUIDS[3], "mesh.meta"), _runtime_meta),
    ("guids.db", _table),
    ("s.node", _node),
    ("m.umount", _runtime_meta),
)


def make(files: dict[str, bytes], rng: random.Random) -> tuple[bytes, str]:
    """Return a project and how it was made."""
    content: dict[str, bytes] = {}
    is_changed = rng.random() < 0.6
    for name, maker in _FILES:
        if rng.random() < 0.8:
            data = maker(rng).encode("utf-8", "replace") if maker is not str else b"x"
            if files and rng.random() < 0.1:
                suitable = [known for known in files if known.endswith(name[name.rindex(".") :])]
                data = files[rng.choice(suitable)] if suitable else data
            content[name] = raw.mutate(data, rng) if is_changed and rng.random() < 0.2 and len(data) > 1 else data
    return pack(content), f"project of {len(content)} files"


def pack(files: dict[str, bytes]) -> bytes:
    """Return files as one case."""
    rows = [struct.pack("<HI", len(name), len(data)) + name.encode() + data for name, data in files.items()]
    return MAGIC + b"".join(rows)


def unpack(data: bytes) -> dict[str, bytes]:
    """Return the files of a case; a case that was cut off has fewer."""
    files, at = {}, len(MAGIC)
    while at + 6 <= len(data):
        name_size, size = struct.unpack_from("<HI", data, at)
        name = data[at + 6 : at + 6 + name_size].decode("utf-8", "replace")
        files[name] = data[at + 6 + name_size : at + 6 + name_size + size]
        at += 6 + name_size + size
    return files


def read(data: bytes) -> object:
    """Follow all references of a project; raise FormatError at the end if one of its files is broken."""
    from meshferry.io_formats.core.errors import FormatError
    from meshferry.io_formats.disk.rooted_files import RootedFiles, has_lfs_pointer
    from meshferry.io_formats.unigine.project.project import Project
    from meshferry.io_formats.unigine.project.scene_materials import ProjectMaterials

    files = unpack(data)

    class Files(RootedFiles):
        """The files of the case, none of which is on disk."""

        def find_above(self, path: str) -> str | None:
            """Return None: nothing is above."""

        def read(self, path: str, limit: int = 2**20) -> bytes:
            """Return the content of a file."""
            if path not in files or len(files[path]) > limit or has_lfs_pointer(files[path]):
                raise FormatError("not readable", file=path)
            return files[path]

    nowhere = Path("/") / "no such folder"
    project = Project(Files(nowhere, known=list(files)))
    references = [*_GUIDS, *_PATHS, *_BASES, "guid://" + _GUIDS[0], "g.mgraph", "x.fbx", "t.png"]
    for known in references:
        project.find(known)
        project.texture(known)
    materials = ProjectMaterials(project)
    for known in references:
        materials.name_of(known, "Face")
    found = project.materials_of_mesh(nowhere / _runtime(_GUIDS[3], "mesh"), ["Face", "albedo_lod_1", ""])
    assert all(isinstance(name, str) for name in found.values())
    if project.unreadable:
        raise FormatError("a file of the project cannot be read")
    return materials.warnings()
