"""A format of another package or add-on works everywhere; no other code knows it."""

from __future__ import annotations

import json
import os
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

TOY = b"TOY 1\nv 0 0 0\nv 1 0 0\nv 0 2 0\nv 0 0 3\nf 0 2 1\nf 0 1 3\nf 0 3 2\nf 1 2 3\n"
TESTS = Path(__file__).resolve().parents[1]
PROGRAM = """
import json, sys
sys.path.insert(0, {tests!r})
from load_package import leave, load_package
load_package()
import bpy, meshferry
from meshferry.cli.main import main
from meshferry.io_formats import registry
from meshferry.operators import format_operators
meshferry.register()
if "toy" not in [family.name for family in registry.FAMILIES]:
    import addon_utils
    addon_utils.enable("toy_addon", default_set=True)
    format_operators._look_for_offers(None, bpy.context)
    assert bpy.app.timers.is_registered(format_operators.add_offered)
    format_operators.add_offered()  # timers do not run here
    assert main(["batch", "in.toy", "--to", "blend", "-o", "done"]) == 0
    meshferry.unregister()
    meshferry.register()
    format_operators._look_for_offers(None, bpy.context)
    assert not bpy.app.timers.is_registered(format_operators.add_offered)
bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.ops.import_scene.toy(filepath="in.toy", toy_scale=2.0)
size = list(bpy.context.object.dimensions)
check = bpy.ops.export_scene.toy_check()
bpy.ops.export_scene.toy(filepath="out.toy")
handler = bpy.types.IO_FH_toy
assert [panel.poll(bpy.context) for panel in (bpy.types.TOY_PT_sidebar, bpy.types.TOY_PT_sidebar_own)] == [True, False]
panels = [name for name in dir(bpy.types) if name.startswith("TOY_PT_")]
found = dict(size=size, check=list(check), handler=[handler.bl_file_extensions, handler.bl_export_operator])
meshferry.unregister()
found["panels"] = panels
print("FOUND " + json.dumps(found), flush=True)
leave(0)
"""


ADDON = """
bl_info = {"name": "Toy", "blender": (4, 5, 0), "category": "Import-Export"}
def meshferry_formats(package):
    from toy_format import FAMILY
    return FAMILY
def register(): pass
def unregister(): pass
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "in.toy").write_bytes(TOY)
    (tmp_path / "addons").mkdir()
    (tmp_path / "addons" / "toy_addon.py").write_text(ADDON)
    offer(tmp_path, "toy = toy_format:meshferry_formats")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def offer(folder: Path, *lines: str) -> None:
    """Make the metadata of an installed package with entry points."""
    made = folder / "site" / "toy-1.0.dist-info"
    made.mkdir(parents=True)
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    (made / "entry_points.txt").write_text("\n".join(["[meshferry.formats]", *lines, ""]))


@pytest.mark.slow
@pytest.mark.needs_bpy
@pytest.mark.needs_workers
@pytest.mark.parametrize("source", ["site", "addons"])
def test_blender_imports_checks_and_exports_an_external_format(
    source: str, toy: Path, run_python: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(TESTS), str(toy / source))))
    done = run_python("-c", PROGRAM.format(tests=str(TESTS)))
    assert done.status == 0, done.err
    found = json.loads(done.out.rpartition("FOUND ")[2].splitlines()[0])
    assert found["size"] == [2.0, 4.0, 6.0]
    assert found["check"] == ["FINISHED"]
    assert found["handler"] == [".toy", "export_scene.toy"]
    assert found["panels"] == ["TOY_PT_sidebar", "TOY_PT_sidebar_own"]
    assert (toy / "done" / "in.blend").is_file() == (source == "addons")
    assert sorted((toy / "out.toy").read_text().splitlines()[1:5]) == ["v 0 0 0", "v 0 0 6", "v 0 4 0", "v 2 0 0"]


@pytest.mark.slow
@pytest.mark.needs_bpy
@pytest.mark.needs_workers
def test_the_command_line_converts_and_batches_an_external_format(
    toy: Path, run_python: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(TESTS), str(toy / "site"))))
    for number, arguments in enumerate(
        (("inspect", "in.toy"), ("convert", "in.toy", "out.data"), ("batch", "in.toy", "--to", "blend", "-o", "done"))
    ):
        done = run_python("-m", "meshferry", *arguments)
        assert done.status == 0, (number, done.out, done.err)
    assert struct.unpack_from("<HH", (toy / "out.data").read_bytes())[1] == 4
    assert (toy / "done" / "in.blend").is_file()


def test_an_offer_is_asked_once() -> None:
    from meshferry.io_formats import registry

    asked: list[str] = []
    try:
        offers = [("mine", lambda package: asked.append(package.__name__))]
        with pytest.warns(UserWarning, match="The formats of 'mine' are ignored: ") as found:
            assert registry.add(offers) == registry.add(offers) == []
        assert asked == ["meshferry"] and len(found) == 1
    finally:
        registry.asked.discard("mine")


BROKEN = {
    "raise ValueError('broken')": "broken",
    "raise SystemExit(3)": "3",
    "x = (": "never closed",
    "def offer(_): return 3": "3 is not an instance of",
    "def offer(_): return [toy.FAMILY]": "is not an instance of",
    "": "has no attribute 'offer'",
    "def offer(_): return replace(toy.FAMILY, name='unigine')": "there is another 'unigine'",
    "def offer(_): return replace(toy.FAMILY, name='My Toy')": "the name 'My Toy' is too long or has other characters",
    "def offer(_): return changed(name='mesh_serializer')": "there is another 'mesh_serializer'",
    "def offer(_): return replace(toy.FAMILY, name='unigine', formats=[replace(toy.TOY, name='unigine')])": "another",
    "def offer(_): return replace(toy.FAMILY, formats=(toy.TOY, replace(toy.TOY)))": "there is another 'toy'",
    "def offer(_): return replace(toy.FAMILY, label=None)": "'NoneType'",
    "def offer(_): return changed(label=None)": "'NoneType'",
    "def offer(_): return changed(name='t' * 32)": "is too long",
    "def offer(_): return changed(extensions=())": "the extension '' has no dot",
    "def offer(_): return changed(capabilities=None)": "dataclass instances",
    "def offer(_): return changed(import_options=dict)": "has no attribute 'table'",
    "class Own(toy.Options): json: float = toy.option('A', 'B', default=1.0, section='Objects')\n"
    "def offer(_): return changed(export_options=Own)": "the name of the option 'json' does not begin with 'toy_'",
    "def offer(_): return changed(name='my-toy')": "the name 'my-toy' is too long or has other characters",
    "def offer(_): return changed(extensions=('.TOY',))": "the extension '.TOY' has no dot",
    "def offer(_): return changed(extensions='.toy')": "the extension 't' has no dot",
}
OTHERS = """
from dataclasses import replace
import toy_format as toy
def changed(**more): return replace(toy.FAMILY, formats=[replace(toy.TOY, **more)])
"""


def test_each_broken_offer_is_one_warning(run_python: Any, tmp_path: Path) -> None:
    for number, content in enumerate(BROKEN):
        (tmp_path / f"broken_{number}.py").write_text(OTHERS + content)
    offer(tmp_path, *(f"a{number} = broken_{number}:offer" for number in range(len(BROKEN))))
    path = os.pathsep.join([str(tmp_path), str(tmp_path / "site"), str(TESTS), os.environ.get("PYTHONPATH", "")])
    done = run_python("-m", "meshferry", "formats", PYTHONPATH=path)
    assert done.status == 0
    for number, cause in enumerate(BROKEN.values()):
        (warned,) = (line for line in done.err.splitlines() if f"The formats of 'broken_{number}:offer' are" in line)
        assert cause in warned
    assert "Traceback" not in done.err and "Timbermesh" in done.out


def test_an_offer_may_use_the_library(run_python: Any, toy: Path) -> None:
    """It is asked when formats are needed: while they are imported, it could import nothing that uses them."""
    (toy / "mine.py").write_text(
        "from meshferry import formats, read\nimport toy_format\ndef offer(_): return formats() and toy_format.FAMILY\n"
    )
    (toy / "site" / "toy-1.0.dist-info" / "entry_points.txt").write_text("[meshferry.formats]\na = mine:offer\n")
    path = os.pathsep.join([str(toy), str(toy / "site"), str(TESTS)])
    done = run_python("-c", "import meshferry\nprint(len(meshferry.read('in.toy').meshes[0].points))", PYTHONPATH=path)
    assert (done.status, done.out.strip(), done.err) == (0, "4", "")


def test_another_format_that_fails_to_recognise_files_stops_no_other(run_python: Any, toy: Path) -> None:
    (toy / "failing.py").write_text(
        "import toy_format\ndef fail(head, size): return 1 // 0\ntoy_format.sniff = fail\n"
        "def offer(_): return toy_format.FAMILY\n"
    )
    (toy / "site" / "toy-1.0.dist-info" / "entry_points.txt").write_text("[meshferry.formats]\na = failing:offer\n")
    path = os.pathsep.join([str(toy), str(toy / "site"), str(TESTS)])
    lamp = (TESTS.parent / "examples" / "lamp.mesh").read_bytes()
    (toy / "lamp.toy").write_bytes(lamp)
    done = run_python("-m", "meshferry", "inspect", "lamp.toy", "in.toy", PYTHONPATH=path)
    assert "UNIGINE" in done.out and "Traceback" not in done.err
    assert done.err.count("UserWarning: The format 'toy' fails: ZeroDivisionError: ") == 1
    assert "in.toy: not a format that Meshferry reads" in done.err


@pytest.mark.needs_bpy
@pytest.mark.parametrize(
    ("is_read", "is_written", "kinds"), [(True, False, ["IMPORT"]), (False, True, ["EXPORT", "EXPORT"])]
)
def test_a_family_may_only_be_read_or_written(is_read: bool, is_written: bool, kinds: list[str]) -> None:
    """Without a file that is written, there is nothing to check or to export in a panel."""
    from meshferry.operators import format_operators
    from toy_format import FAMILY, TOY

    family = replace(FAMILY, formats=(replace(TOY, is_read=is_read, is_written=is_written),))
    built = format_operators.operators_for(family)
    operators = [cls.__name__.partition("_")[0] for cls in built.classes if "_OT_" in cls.__name__]
    assert (operators, len(built.panels), built.check is None) == (kinds, 2 * is_written, is_read)
