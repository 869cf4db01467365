"""The image files that are found for the paths and addresses in files of other programs and systems."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.needs_bpy

PICTURE = b"\xff\xd8\xff"


@pytest.mark.parametrize(
    ("stored", "there"),
    [
        ("skin.png", "skin.png"),
        ("./my%20skin.png", "my skin.png"),
        ("50%25.png", "50%25.png"),
        ("./../other/top.tga", "../other/top.tga"),
        ("file:///C:/Users/me/Skin.PNG", "skin.png"),
        ("file://..\\other\\x.jpg", "../other/x.jpg"),
        ("\\..\\other\\y.jpg", "../other/y.jpg"),
        ("C:\\maps\\skin.png", "textures/SKIN.png"),
        ("A06_Ruth_png.png", "A06_Ruth.tga"),
        ("ro2_head_tga.targa_raw", "ro2_head.tga"),
        ("skin.tga", "skin.jpg"),
    ],
)
def test_files_are_found(tmp_path: Path, stored: str, there: str) -> None:
    from meshferry.blender_data.importing.textures import TextureFiles

    folder = tmp_path / "model"
    (folder / "textures").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (folder / there).write_bytes(PICTURE)
    found = TextureFiles(folder).find(stored, "")
    assert found is not None and found.resolve() == (folder / there).resolve()
    absolute = TextureFiles(None).find((folder / there).resolve().as_uri(), "")
    assert absolute is not None and absolute.resolve() == (folder / there).resolve()


@pytest.mark.parametrize(
    "stored", ["//host/share/a.png", "\\\\host\\a.png", "file:////host/a.png", "http://host/a.png"]
)
def test_nothing_is_fetched_over_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: str) -> None:
    from meshferry.blender_data.importing import textures

    asked: list[Path] = []
    monkeypatch.setattr(textures, "_exists", asked.append)
    assert textures.TextureFiles(tmp_path).find(stored, "") is None
    assert not asked
    assert textures.is_network_path(stored) == stored.startswith("\\")
