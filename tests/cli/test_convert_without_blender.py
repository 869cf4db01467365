"""Conversions among our own formats run in an interpreter that has no Blender at all."""

import json
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent

SCRIPT = """
import importlib.abc, sys

class NoBlender(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"bpy", "mathutils", "bmesh"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None

sys.meta_path.insert(0, NoBlender())
sys.path[:0] = PATHS
from load_package import load_package
load_package()

import json
from pathlib import Path
import conversion_models as models
from meshferry.cli.main import main
from meshferry.io_formats import registry

folder = Path(TARGET)
sources = models.write_ours(folder)
assert main(["convert", "--quiet", str(sources["second_life_mesh"]), str(folder / "model.slm")]) == 0
sources["second_life_bundle"] = folder / "model.slm"
done = {}
for source, path in sources.items():
    for known in registry.FORMATS:
        target = folder / f"{source}-{known.name}"
        status = main(["convert", "--quiet", str(path), "--to", known.name, "-o", str(target)])
        made = sorted(one.name for one in target.iterdir()) if target.is_dir() else []
        done[f"{source} {known.name}"] = [status, made]
refused = main(["convert", str(sources["timbermesh"]), str(folder / "model.glb")])
assert not {"bpy", "mathutils"} & set(sys.modules)
(folder / "done.json").write_text(json.dumps([done, refused]))
"""


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Return the status and the files of every pair of formats, and the status where Blender would be needed."""
    import subprocess

    bpy = sys.modules.get("bpy")
    if bpy is not None and bpy.app.binary_path:
        pytest.skip("Blender's own Python is run by Blender")
    folder = tmp_path_factory.mktemp("pairs")
    script = SCRIPT.replace("PATHS", repr([str(FOLDER.parent), str(FOLDER)])).replace("TARGET", repr(str(folder)))
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, encoding="utf-8", timeout=120
    )
    assert done.returncode == 0, done.stderr
    return *json.loads((folder / "done.json").read_text()), done.stderr


def holds(known):
    """Return what of a scene a format is about."""
    can = known.capabilities
    return {name for name in ("meshes", "skeletons", "clips") if getattr(can, name)}


def test_all_pairs(pairs):
    from meshferry.io_formats import registry

    found, _, said = pairs
    given = {"unigine_animation": {"skeletons", "clips"}, "unigine_skeleton": {"skeletons"}}
    given |= {"timbermesh": {"meshes"}, "mesh_serializer": {"meshes"}, "unigine_mesh": {"meshes", "skeletons", "clips"}}
    given |= {name: {"meshes", "skeletons"} for name in ("second_life_mesh", "second_life_bundle")}
    given |= {name: {"skeletons", "clips"} for name in ("second_life_animation", "second_life_bvh")}
    given["second_life_shape"] = {"skeletons", "sliders"}
    assert len(found) == len(given) * len(registry.FORMATS)
    for pair, (status, made) in found.items():
        source, target = pair.split()
        known = registry.by_name(target)
        kinds = ("meshes", "clips", "sliders", "skeletons")
        wanted = next(kind for kind in kinds if getattr(known.capabilities, kind))
        possible = wanted in given[source] and known.is_written
        assert (status == 0) == possible, (pair, said)
        assert bool(made) == possible, pair


def test_what_needs_blender_says_so(pairs):
    _, refused, said = pairs
    assert refused == 1
    assert 'pip install "bpy==4.5.*"' in said
