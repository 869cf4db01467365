"""``meshferry check``: the findings of a format, by severity."""

import pytest
from game_folders import WINDOWS, make_game


@pytest.fixture
def nameless(windmill):
    """A file that the game refuses (an animation without a name) and warns about (a misspelt material)."""
    from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

    document = TIMBERMESH.read(windmill.read_bytes())
    for node in document.nodes:
        for animation in node.node_animations:
            animation.name = ""
        for mesh in node.meshes:
            mesh.material += "s"
    path = windmill.with_name("nameless.timbermesh")
    path.write_bytes(TIMBERMESH.write(document))
    return path


def test_a_good_file_is_fine(meshferry, windmill):
    done = meshferry("check", windmill)
    assert (done.status, done.out, done.err) == (0, f"{windmill}: No problems found\n", "")


def test_findings_name_what_they_concern(meshferry, nameless, windmill):
    done = meshferry("check", nameless, windmill)
    assert done.status == 1
    lines = done.out.splitlines()
    assert any(line.startswith(f"{nameless}: error: Node '#Sails'") for line in lines)
    assert any(line.startswith(f"{nameless}: warning: Material 'Paper.Folktailss'") for line in lines)
    assert lines[-1] == "1 of 2 files without errors"


def test_quiet_leaves_errors(meshferry, nameless, windmill):
    done = meshferry("check", "--quiet", nameless, windmill)
    assert done.out
    assert all(": error: " in line for line in done.out.splitlines())


def test_records(meshferry, nameless, broken):
    done = meshferry("check", "--json", nameless, broken)
    assert done.status == 1
    found, failed = done.entries
    assert list(found) == ["file", "format", "errors", "warnings", "messages"]
    assert {message["kind"] for message in found["messages"]} == {"error", "warning"}
    assert len(found["messages"]) == len(found["errors"] + found["warnings"])
    assert "#Sails" in found["errors"][0]["item"]
    assert found["warnings"]
    assert list(failed) == ["file", "error"]


def test_warnings_alone_are_no_failure(meshferry, windmill):

    from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

    document = TIMBERMESH.read(windmill.read_bytes())
    document.nodes[0].meshes[0].material += "s"
    windmill.write_bytes(TIMBERMESH.write(document))
    done = meshferry("check", windmill)
    assert done.status == 0
    assert "warning" in done.out


def test_names_of_materials_from_the_game(meshferry, windmill, tmp_path):
    game = make_game(tmp_path / "game", {"Folktails": ["Materials/Paper.Folktail"]})
    done = meshferry("check", "--json", "--game", game, windmill)
    (entry,) = done.entries
    texts = {one["item"]: one["message"] for one in entry["warnings"]}
    assert "unknown material; nearest: 'Paper.Folktail'" in texts["Material 'Paper.Folktails'"]
    for number, more in enumerate(((), ("--game", game))):
        done = meshferry("convert", windmill, tmp_path / f"{number}.timbermesh", *more)
        assert ("nearest: 'Paper.Folktail'" in done.err) is bool(more)


def test_batches_use_the_names_of_materials_from_the_game(run_python, windmill, tmp_path):
    game = make_game(tmp_path / "game", {"Folktails": ["Materials/Paper.Folktail"]})
    for number, more in enumerate(((), ("--game", game))):
        output = tmp_path / f"out{number}"
        run_python("-m", "meshferry", "batch", windmill, "--to", "timbermesh", "-o", output, *more)
        journal = (output / "meshferry-batch" / "journal.jsonl").read_text("utf-8")
        assert ("nearest: 'Paper.Folktail'" in journal) is bool(more)


@pytest.mark.parametrize("content", [None, b"PK"])
def test_a_folder_without_the_game_is_refused_at_once(meshferry, windmill, tmp_path, content):
    if content is not None:
        archive = make_game(tmp_path) / WINDOWS / "Blueprints.zip"
        archive.write_bytes(content)
    reason = "no Blueprints.zip" if content is None else "The zip file is damaged"
    commands = [("check", windmill), ("convert", windmill, tmp_path / "a.timbermesh")]
    commands.append(("batch", windmill, "--to", "timbermesh", "-o", tmp_path / "out"))
    for command in commands:
        done = meshferry(*command, "--game", tmp_path)
        assert (done.status, done.out) == (2, "")
        assert len(done.err.splitlines()) == 1 and reason in done.err
    assert not (tmp_path / "a.timbermesh").exists()
