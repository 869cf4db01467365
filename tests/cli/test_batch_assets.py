"""Asset libraries that a batch makes: catalogs, tags and previews, as Blender reads them."""

import json
import shutil
import sys
import uuid
from pathlib import Path

import pytest
from meshferry.cli.batch.output_folder import FILE, catalog_id, write_catalogs
from meshferry.io_formats.core.errors import MeshferryError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
READ = """
import json, sys, bpy
found = {}
for path in sys.argv[1:]:
    bpy.ops.wm.open_mainfile(filepath=path)
    for one in bpy.data.collections:
        if one.asset_data is not None:
            width, height = one.preview.image_size if one.preview else (0, 0)
            pixels = list(one.preview.image_pixels_float) if width else []
            found[one.name] = {
                "catalog": one.asset_data.catalog_id,
                "tags": [tag.name for tag in one.asset_data.tags],
                "description": one.asset_data.description,
                "size": [width, height],
                "corner": pixels[:4],
                "covered": sum(value > 0.5 for value in pixels[3::4]) / max(1, width * height),
            }
print("FOUND" + json.dumps(found))
"""


def entries(folder):
    """Return path and simple name of each catalog by UUID, read by Blender's rules for the file."""
    lines = (folder / FILE).read_text("utf-8").splitlines()
    plain = [line for line in lines if line and not line.startswith("#")]
    assert plain[0] == "VERSION 1"
    return {key: (path, name) for key, path, name in (line.split(":", 2) for line in plain[1:])}


def test_each_folder_has_a_catalog_of_its_own(tmp_path):
    targets = ["top.blend", "props/a.blend", "props/b.blend", "props/deep: er/c.blend", "Дом/d.blend"]
    write_catalogs(tmp_path, targets)
    found = entries(tmp_path)
    assert [path for path, _ in found.values()] == ["props", "props/deep- er", "Дом"]
    assert found[catalog_id("props/deep: er/other.blend")] == ("props/deep- er", "props-deep- er")
    assert catalog_id("top.blend") == ""
    assert all(str(uuid.UUID(key)) == key for key in found)
    assert all(len(name.encode()) < 64 for _, name in found.values())


def test_catalogs_of_the_user_stay(tmp_path):
    write_catalogs(tmp_path, ["props/a.blend"])
    key = catalog_id("props/a.blend")
    path = tmp_path / FILE
    renamed = path.read_text("utf-8").replace(":props:props", ":Things/Small:Small").rstrip("\n")
    own = f"{uuid.uuid4()}:Mine:Mine"
    path.write_text(f"{renamed}\n{own}", "utf-8")
    write_catalogs(tmp_path, ["props/a.blend", "more/b.blend"])
    found = entries(tmp_path)
    assert found[key] == ("Things/Small", "Small")
    assert found[own.partition(":")[0]] == ("Mine", "Mine")
    assert found[catalog_id("more/b.blend")] == ("more", "more")
    assert len(found) == 3


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_catalogs_are_not_written_through_a_planted_link(tmp_path):
    victim, output = tmp_path / "victim", tmp_path / "out"
    victim.write_text("keep")
    output.mkdir()
    (output / FILE).symlink_to(victim)
    with pytest.raises(MeshferryError, match=f"{FILE} is a link that leads out of"):
        write_catalogs(output, ["props/a.blend"])
    assert victim.read_text() == "keep"


@pytest.mark.slow
@pytest.mark.needs_bpy
def test_a_batch_makes_an_asset_library(tmp_path, run_python):
    pytest.importorskip("rich")
    source, out = tmp_path / "source", tmp_path / "out"
    for name, place in (("windmill.timbermesh", "houses/north"), ("lamp.mesh", "props"), ("vase.data", "")):
        (source / place).mkdir(parents=True, exist_ok=True)
        shutil.copy(EXAMPLES / name, source / place)
    run_python(EXAMPLES / "make_project.py", tmp_path / "project")
    (tmp_path / "project" / "data").rename(source / "game")

    def batch():
        done = run_python("-m", "meshferry", "batch", source, "--to", "blend", "-o", out, "--assets")
        assert done.status == 0, done.err
        return done, {path: path.stat().st_mtime_ns for path in out.rglob("*.blend")}

    done, times = batch()
    found = json.loads(run_python("-c", READ, *times).out.partition("FOUND")[2])
    assert set(found) >= {"windmill", "lamp", "vase", "courtyard", "planter", "barrel"}
    assert found["windmill"]["tags"] == ["Timbermesh", "Timberborn"]
    assert found["lamp"]["tags"] == ["UNIGINE Mesh", "UNIGINE"]
    assert found["lamp"]["description"] == "Imported from lamp.mesh"
    catalogs = entries(out)
    assert catalogs[found["windmill"]["catalog"]][0] == "houses/north"
    assert catalogs[found["lamp"]["catalog"]][0] == "props"
    assert not uuid.UUID(found["vase"]["catalog"]).int, "files at the top are not assigned"
    assert batch()[1] == times, "nothing is made twice"
    if "no pictures of models" in done.err:
        pytest.skip("the previews: Blender cannot draw on this machine")
    for name, one in found.items():
        assert one["size"] == [128, 128]
        assert one["corner"] == [0.0] * 4, "colours are multiplied by alpha"
        assert 0.02 < one["covered"] < 0.9, name
