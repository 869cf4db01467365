"""References, metas, mounts and materials of small UNIGINE projects."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.disk.rooted_files import RootedFiles
from meshferry.io_formats.projects import Projects
from meshferry.io_formats.unigine.project import project as project_project
from meshferry.io_formats.unigine.project.guids import Rule
from meshferry.io_formats.unigine.project.project import Project
from meshferry.io_formats.unigine.project.project_materials import (
    MaterialRule,
    TextureUse,
    parse_basemat,
    texture_inputs,
)
from meshferry.io_formats.unigine.project.scene_materials import Incomplete, complete_materials
from unigine_projects import asset_meta, guid, material, runtime_path, write_project

WOOD, WOOD_RUNTIME, GONE, GONE_RUNTIME, FBX, MESH, NODE, SWAPPED, MOVED, STALE = map(guid, range(1, 11))
BASE = "Unigine::mesh_base"
WHITE = "5219d6ddb5dbd1520e843a369ad2b64326bb24e2"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project with every kind of reference."""
    files: dict[str, str | bytes] = {
        "Tex/wood.png": b"png",
        "Tex/wood.png.meta": asset_meta(WOOD, runtimes={WOOD_RUNTIME: "wood.texture"}, invert_g=1),
        runtime_path(WOOD_RUNTIME, "texture"): b"tx11",
        runtime_path(WOOD_RUNTIME, "texture.meta"): json.dumps({"asset": WOOD, "alias": "wood.texture"}),
        "gone.png": b"png",
        "gone.png.meta": asset_meta(GONE, runtimes={GONE_RUNTIME: "gone.texture"}),
        "lamp.fbx": b"fbx",
        "lamp.fbx.meta": asset_meta(FBX, "fbx", {NODE: "lamp.node", MESH: "Lamp.mesh"}),
        runtime_path(MESH, "mesh"): b"mesh",
        runtime_path(NODE, "node"): b"node",
        runtime_path(guid(20), "dds"): b"DDS ",
        "swapped.png": b"png",
        "swapped.png.meta": asset_meta(guid(21), runtimes={SWAPPED: "swapped.texture"}, stated=SWAPPED),
        "moved/here.mat": material(MOVED),
        "moved/here.mat.meta": asset_meta(MOVED, "material"),
        "one/same.png": b"1",
        "two/same.png": b"2",
        "broken.png": b"png",
        "broken.png.meta": f'<asset version="2"><guid>{guid(22)}</guid>',
        "../source/lib.mat": "<materials/>",
        "../../secret.mat": material(guid(30)),
    }
    table = {WOOD: "tex/WOOD.png", MOVED: "gone.png", STALE: "Tex/wood.png", guid(11): "one/same.png"}
    return Project(RootedFiles(write_project(tmp_path / "project" / "data", files, table)))


@pytest.mark.parametrize(
    ("reference", "path", "rule"),
    [
        (f" guid://{WOOD_RUNTIME}\n", runtime_path(WOOD_RUNTIME, "texture"), Rule.RUNTIME),
        (WOOD_RUNTIME, runtime_path(WOOD_RUNTIME, "texture"), Rule.RUNTIME),
        (WOOD, "Tex/wood.png", Rule.ASSET),
        (SWAPPED, "swapped.png", Rule.ASSET),
        (guid(21), "swapped.png", Rule.ASSET),
        (MOVED, "moved/here.mat", Rule.ASSET),
        (guid(11), "one/same.png", Rule.ASSET),
        (STALE, "Tex/wood.png", Rule.ASSET),
        (GONE_RUNTIME, "gone.png", Rule.SOURCE_OF_MISSING_RUNTIME),
        (WHITE, None, Rule.ENGINE),
        (guid(40), None, Rule.MISSING),
        (guid(22), None, Rule.MISSING),
        ("", None, Rule.EMPTY),
        (None, None, Rule.EMPTY),
        ("tex\\WOOD.PNG", runtime_path(WOOD_RUNTIME, "texture"), Rule.PATH),
        ("asset://tex/wood.png", "Tex/wood.png", Rule.PATH),
        ("lamp.fbx", runtime_path(NODE, "node"), Rule.PATH),
        ("lamp.fbx/lamp.mesh", runtime_path(MESH, "mesh"), Rule.PATH),
        ("D:/work/game/data/one/same.png", "one/same.png", Rule.PATH),
        ("/home/a/data/one/same.png", "one/same.png", Rule.PATH),
        ("D:/data/one/same.png", "one/same.png", Rule.PATH),
        ("core/textures/common/red.dds", None, Rule.ENGINE),
        ("elsewhere/here.mat", "moved/here.mat", Rule.FILE_NAME),
        ("same.png", None, Rule.MISSING),
        ("../source/LIB.mat", "../source/lib.mat", Rule.OUTSIDE),
        ("../../secret.mat", None, Rule.MISSING),
        ("/etc/passwd", None, Rule.MISSING),
    ],
)
def test_references_mean_files(project: Project, reference: str, path: str | None, rule: Rule) -> None:
    found = project.find(reference)
    assert (found.path, found.rule) == (path, rule)


@pytest.mark.parametrize(
    ("reference", "file", "runtime", "is_green_up", "name"),
    [
        (WOOD_RUNTIME, "Tex/wood.png", runtime_path(WOOD_RUNTIME, "texture"), True, "wood.png"),
        ("tex/wood.png", "Tex/wood.png", runtime_path(WOOD_RUNTIME, "texture"), True, "wood.png"),
        (GONE_RUNTIME, "gone.png", None, False, "gone.png"),
        (guid(20), runtime_path(guid(20), "dds"), runtime_path(guid(20), "dds"), False, f"{guid(20)}.dds"),
        (guid(11), "one/same.png", "one/same.png", False, "same.png"),
        (guid(40), None, None, False, ""),
    ],
)
def test_textures_prefer_their_source(
    project: Project, reference: str, file: str | None, runtime: str | None, is_green_up: bool, name: str
) -> None:
    found = project.texture(reference)
    assert (found.file, found.runtime, found.is_green_up, found.name) == (file, runtime, is_green_up, name)
    assert project.unreadable == {}


def test_all_metas_are_read_only_if_nothing_else_knows_a_guid(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    original = RootedFiles.read
    monkeypatch.setattr(RootedFiles, "read", lambda self, path, *rest: read.append(path) or original(self, path, *rest))
    assert project.texture(WOOD_RUNTIME).file == "Tex/wood.png"
    assert "lamp.fbx.meta" not in read
    project.find(GONE_RUNTIME)
    assert "lamp.fbx.meta" in read
    read.clear()
    project.find(guid(40))
    assert read == []
    assert list(project.unreadable) == []  # the broken one is parsed only if something needs it
    project.find(guid(22))
    assert "not well-formed" in project.unreadable["broken.png.meta"]


def make(folder: Path, **files: str) -> Project:
    """Return a project of material files."""
    return Project(RootedFiles(write_project(folder / "data", {f"{name}.mat": text for name, text in files.items()})))


def test_materials_are_merged_from_the_root_down(tmp_path: Path) -> None:
    top = (
        '<options transparent="1" two_sided="0"/><state name="emission">1</state>'
        '<texture name="albedo" wrap="clamp">a.png</texture><texture name="ramp"><curve2d/></texture>'
        '<parameter name="roughness" expression="0"> 0.5 </parameter><parameter name="metalness">1</parameter>'
    )
    child = (
        '<options two_sided="1"/><blend src="src_alpha" dest="one"/><texture name="albedo">b.png</texture>'
        '<parameter name="roughness" expression="1">vec4(10.0f, 2.5f,1,1)</parameter>'
        '<parameter name="metalness" expression="1">sin(time)</parameter>'
    )
    project = make(
        tmp_path, top=material(guid(1), base=BASE, content=top), child=material(guid(2), guid(1), content=child)
    )
    found = project.material(f"guid://{guid(2)}")
    assert found is not None
    assert (found.name, found.guid, found.file, found.rule) == ("child", guid(2), "child.mat", MaterialRule.USER)
    assert found.base == "mesh_base"
    assert found.options == {"transparent": "1", "two_sided": "1", "blend_src": "src_alpha", "blend_dest": "one"}
    assert found.states == {"emission": "1"}
    assert found.textures == {"albedo": TextureUse("b.png")}
    assert found.parameters == {"roughness": "10.0 2.5 1 1", "metalness": "1"}
    assert found.problems == ["material 'child': parameter 'metalness' is an expression; not used"]
    parent = project.material(guid(1))
    assert parent is not None
    assert parent.textures["albedo"] == TextureUse("a.png", "clamp")


@pytest.mark.parametrize(
    ("attributes", "base", "rule", "problems"),
    [
        ({"parent": guid(9), "base": hashlib.sha1(BASE.encode()).hexdigest()}, "mesh_base", MaterialRule.USER, 1),
        ({"base": "mesh_base"}, "mesh_base", MaterialRule.USER, 0),
        ({"base": hashlib.sha1(b"mesh_base").hexdigest()}, "mesh_base", MaterialRule.USER, 0),
        ({"parent": guid(9)}, None, MaterialRule.USER_WITHOUT_PARENT, 1),
        ({"parent": guid(1)}, None, MaterialRule.USER_WITHOUT_PARENT, 1),
    ],
    ids=["missing parent", "name", "old hash", "nothing", "itself"],
)
def test_missing_parents_are_replaced_by_the_base(
    tmp_path: Path, attributes: dict[str, str], base: str | None, rule: MaterialRule, problems: int
) -> None:
    found = make(tmp_path, oak=material(guid(1), **attributes)).material(guid(1))
    assert found is not None
    assert (found.base, found.rule, len(found.problems)) == (base, rule, problems)


def test_endless_chains_of_parents_end(tmp_path: Path) -> None:
    chain = {f"m{number}": material(guid(number), guid(number + 1)) for number in range(1, 100)}
    found = make(tmp_path, **chain).material(guid(1))
    assert found is not None
    assert found.rule is MaterialRule.USER_WITHOUT_PARENT or len(found.problems) == 1


def test_materials_are_found_by_name_hash_and_in_libraries(tmp_path: Path) -> None:
    library = (
        '<materials version="1.11"><material name="a &amp; b" parent="mesh_base"/>'
        '<material name="c" parent="a &amp; b"/></materials>'
    )
    named = '<material name="red &amp; blue" base_material="mesh_base" guid="' + guid(3) + '"/>'
    project = make(tmp_path, lib=library, named=named, manual="<material manual='1' base_material='mesh_base'/>")
    for reference, name in (
        (hashlib.sha1(b"manual").hexdigest(), "manual"),
        ("manual", "manual"),
        (guid(3), "red & blue"),
        ("c", "c"),
    ):
        found = project.material(reference)
        assert found is not None
        assert (found.name, found.base) == (name, "mesh_base")
    assert project.material("d") is None
    built_in = project.material("mesh_base")
    assert built_in is not None
    assert built_in.rule is MaterialRule.BUILT_IN


@pytest.mark.parametrize(
    "content",
    ["", "<material", "<x/>", "<!DOCTYPE a><material/>", "version https://git-lfs\n", "<material " * 500_000],
    ids=lambda content: content[:9],
)
def test_a_broken_material_is_missing_and_the_others_are_there(tmp_path: Path, content: str) -> None:
    project = make(tmp_path, bad=content, good=material(guid(2), base=BASE))
    assert project.material(guid(2)) is not None
    assert project.material("bad") is None
    assert list(project.unreadable) == ["bad.mat"]


def test_a_material_in_a_comment_is_none(tmp_path: Path) -> None:
    project = make(tmp_path, m=f'<!-- <material guid="{guid(2)}"> --><material guid="{guid(3)}"/>')
    assert project.material(guid(2)) is None and project.material(guid(3)) is not None


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no file names that are not UTF-8")
def test_file_names_need_not_be_utf_8(tmp_path: Path) -> None:
    """Archives made on Windows with Cyrillic names are often unpacked so."""
    project = make(tmp_path, **{os.fsdecode(b"\xe4\xe5\xf0"): material(guid(3), base=BASE)})
    found = project.material(guid(3))
    assert found is not None and found.file == "\udce4\udce5\udcf0.mat"


BASEMAT = f"""//ver=2
BaseMaterial< parent=Unigine::mesh_transparent guid={guid(5)} manual=false >
{{
\tState static_shadow = false
\tTexture2D "albedo"="guid://{guid(1)}" <shader_name="x" wrap=[clamp_x clamp_y ]>
\tTexture2D normal = "{guid(2)}"
\tColor "albedo_color"=[1.0 0.5 -1e-3 1]< shader_name="v">
\tColor "Paint Tint"=[0.5 0 1.0 1]< shader_name="w">
\tSlider "roughness"=0.25<  min=0 max=1>
\tOption transparent = alpha_test
\tOption blend_src5
\tState emission = true
Shader common =
#{{
\tfloat4 Texture2D other = 1;
#}}
}}
"""


def test_graphs_are_read_by_line(tmp_path: Path) -> None:
    found = parse_basemat(BASEMAT.replace("\n", "\r\n").encode())
    assert found.parent == "mesh_transparent"
    assert found.textures == {"albedo": (f"guid://{guid(1)}", "clamp"), "normal": (guid(2), "")}
    assert found.parameters == {"albedo_color": "1.0 0.5 -1e-3 1", "Paint Tint": "0.5 0 1.0 1", "roughness": "0.25"}
    assert found.options == {"transparent": "alpha_test", "blend_src": "5"}
    assert found.states == {"emission": "true"}
    assert parse_basemat(b"\xff\0{").textures == {}


def graph_text(tail: str = "") -> str:
    """Return a graph: one texture feeds two inputs, one of them through a chain of nodes that loops."""
    nodes = ",".join(
        f'"{kind}": {{"guid": "{name}", "props": {{"prop": {{"asset": "{asset}"}}}}}}'
        for kind, name, asset in (
            ("Texture2D", "t", f"guid://{guid(1)}"),
            ("Expression", "e", ""),
            ("Expression", "f", ""),
            ("Material", "m", ""),
        )
    )
    anchors = ",".join(
        f'"anchor": {{"output_node": "{start}", "input_node": "{end}", "input_label": "{label}"}}'
        for start, end, label in (
            ("t", "m", "Albedo"),
            ("t", "e", ""),
            ("e", "f", ""),
            ("f", "e", ""),
            ("f", "m", "Roughness"),
        )
    )
    return f'{{"nodes": [{{{nodes}}}], "anchors": [{{{anchors}}}]{tail}}}'


def test_textures_of_graphs_are_followed_to_the_material(tmp_path: Path) -> None:
    assert texture_inputs(graph_text().encode()) == {guid(1): ("Albedo", "Roughness")}
    files = {
        "g.mgraph": graph_text(),
        "g.mgraph.meta": asset_meta(guid(6), "material_graph", {guid(5): "g.basemat"}),
        runtime_path(guid(5), "basemat"): BASEMAT,
        "child.mat": material(guid(7), base=guid(5), content='<texture name="normal">n.png</texture>'),
    }
    project = Project(RootedFiles(write_project(tmp_path / "data", files)))
    graph, child = project.material(guid(5)), project.material(guid(7))
    assert graph is not None
    assert child is not None
    assert (graph.name, graph.file, graph.base, graph.graph_parent) == ("g", "g.mgraph", "graph", "mesh_transparent")
    assert graph.inputs == {"albedo": ("Albedo", "Roughness"), "normal": ()}
    assert child.inputs == graph.inputs, "another texture feeds the same input"
    assert (child.base, child.graph_parent, child.rule) == ("graph", "mesh_transparent", MaterialRule.USER)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100_000])
def test_broken_graphs_give_one_error(data: bytes) -> None:
    with pytest.raises(FormatError, match="not well-formed"):
        texture_inputs(data)
    assert texture_inputs(b'[1, {"nodes": 2, "anchors": [[{}]]}]') == {}


@pytest.mark.parametrize(
    ("stated", "problem"),
    [
        (lambda folder: str(folder / "shared"), ""),
        (lambda folder: "..\\shared", ""),
        (lambda folder: "//server/share", "network path"),
        (lambda folder: "\\\\server\\share", "network path"),
        (lambda folder: "\\\\?\\UNC\\server\\share", "network path"),
        (lambda folder: "a\0b", "cannot be used"),
        pytest.param(
            lambda folder: "/proc/self",
            "belongs to the operating system",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="other systems have no /proc"),
        ),
        (lambda folder: "..", "contain each other"),
        (lambda folder: "here", "contain each other"),
        (lambda folder: "Z:/nowhere", ""),
        (lambda folder: "../nowhere", "does not exist"),
    ],
)
def test_mounted_folders_are_part_of_the_project(tmp_path: Path, stated: Callable[[Path], str], problem: str) -> None:
    (tmp_path / "shared" / "sub").mkdir(parents=True)
    (tmp_path / "shared" / "sub" / "oak.mat").write_text(material(guid(1), base=BASE), "utf-8")
    (tmp_path / "outside.mat").write_text(material(guid(2)), "utf-8")
    text = stated(tmp_path)
    data = write_project(
        tmp_path / "data", {"lib.umount": json.dumps({"data_path": text}), "root_mount.umount": "{}", "here/x": ""}
    )
    project = Project(RootedFiles(data))
    found = project.material(guid(1))
    assert project.find("../outside.mat").rule is Rule.OUTSIDE
    assert project.find("lib/../../outside.mat").path == "../outside.mat"
    if "shared" in text and not problem:
        assert found is not None
        assert found.file == "lib/sub/oak.mat"
        assert project.find("lib/sub/OAK.mat").path == "lib/sub/oak.mat"
        assert project.unreadable == {}
    else:
        assert found is None
        assert problem in project.unreadable["lib.umount"]


def test_mounts_can_be_switched_off(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "oak.mat").write_text(material(guid(1), base=BASE), "utf-8")
    data = write_project(tmp_path / "data", {"lib.umount": '{"data_path": "../shared"}', "root_mount.umount": "{}"})
    for has_mounts in (True, False):
        project = Project(RootedFiles(data), Projects(has_mounts=has_mounts))
        assert (project.material(guid(1)) is not None) == has_mounts


def test_projects_are_opened_once_and_again_after_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("meshferry.io_formats.projects.time.monotonic", lambda: now[0])
    made: list[FakeProject] = []

    class FakeProject:
        current = True

        def __init__(self) -> None:
            made.append(self)

        def is_current(self) -> bool:
            return self.current

    session, batch = Projects(), Projects(is_fixed=True)
    for projects in (session, batch):
        first = projects.open(tmp_path, FakeProject)
        first.current = False
        assert projects.open(tmp_path, FakeProject) is first
        now[0] += 60
        assert (projects.open(tmp_path, FakeProject) is first) == (projects is batch)
    assert len(made) == 3


def test_projects_of_old_sdks_are_known_by_their_files(tmp_path: Path) -> None:
    """Their folder ``data`` has none of the marks of newer projects."""
    meshes = tmp_path / "game" / "data" / "meshes"
    meshes.mkdir(parents=True)
    assert project_project.project_folder(meshes) is None
    (meshes / "lamp.node").touch()
    assert project_project.project_folder(meshes) == meshes.parent


def test_materials_whose_project_is_gone_are_named(project: Project, tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    made, messages = complete_materials([Incomplete(name, GONE, gone) for name in ("Oak", "Ash")], tmp_path, Projects())
    assert made == [None, None]
    assert messages == [f"2 materials not found in the project '{gone}': 'Oak', 'Ash'"]
