"""Small UNIGINE projects, written file by file for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from unigine_scene_bytes import mesh


def guid(number: int) -> str:
    """Return a GUID that does not look like a path or a hash."""
    return f"{number:02x}" + f"{number:038x}"


def asset_meta(
    own: str, kind: str = "texture", runtimes: Mapping[str, str] | None = None, stated: str = "", **parameters: object
) -> str:
    """Return the ``.meta`` of an asset; ``runtimes`` are names by GUID, the first one is primary."""
    made = "".join(
        f'<runtime id="{runtime}" name="{name}" link="{min(number, 2)}" type="6"/>'
        for number, (runtime, name) in enumerate((runtimes or {}).items(), 1)
    )
    values = "".join(
        f'<parameter type="string" name="{name}">{value}</parameter>' for name, value in parameters.items()
    )
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<asset version="2.20.0.0"><guid>{stated or own}</guid>'
        f'<type>{kind}</type><runtimes><runtime id="{own}" name="x" link="0"/>{made}</runtimes>'
        f"<parameters>{values}</parameters></asset>"
    )


def material(own: str, parent: str = "", base: str = "", content: str = "") -> str:
    """Return a ``.mat`` file."""
    attributes = {"guid": own, "parent": parent, "base_material": base}
    given = "".join(f' {name}="{value}"' for name, value in attributes.items() if value)
    return f'<?xml version="1.0" encoding="utf-8"?>\n<material version="2.20.0.0"{given}>{content}</material>'


def mesh_node(path: str, **surfaces: str) -> str:
    """Return a node with a mesh, whose surfaces have these materials."""
    return mesh(path, "n", [f'name="{name}" material="{used}"' for name, used in surfaces.items()])


def runtime_path(own: str, extension: str) -> str:
    """Return the path of a runtime."""
    return f".runtimes/{own[:2]}/{own}.{extension}"


def write_project(data: Path, files: Mapping[str, str | bytes], table: Mapping[str, str] | None = None) -> Path:
    """Write a project's files and its table of GUIDs; return its folder."""
    for name, content in files.items():
        path = data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    data.mkdir(parents=True, exist_ok=True)
    (data / "guids.db").write_text(json.dumps(dict(table or {})), "utf-8")
    return data
