"""Messages are data: in another language, all commands give the same results, and no English sentence is left."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from meshferry.io_formats.core.messages import Message, Named, Report, Text, counted, listed, of_kind, warning

ROOT = Path(__file__).resolve().parents[2]
MARKS = "⟦⟧"
EXAMPLES = ("windmill.timbermesh", "lamp.mesh", "lamp_nod.anim", "tunic.llmesh", "dance.anim", "vase.data")
KINDS = frozenset({".mesh", ".timbermesh", ".anim", ".llmesh", ".data", ".node", ".world", ".slm", ".dae", ".bvh"})
SAMPLES = 60
"""Number of real files, spread over all."""
COMMANDS = (
    ("inspect",),
    ("check",),
    *(("convert", "--to", target, "-o", "out") for target in ("timbermesh", "mesh", "llmesh", "data", "anim", "blend")),
    pytest.param(("convert", "--to", "glb", "-o", "out"), marks=pytest.mark.slow),
)
TEXTS = frozenset({"warnings", "error", "errors", "messages"})
"""Keys of records with sentences, which are compared without them."""
UNTRANSLATED = frozenset({"code", "kind", "about", "subjects", "elements"})
"""Keys of messages that are the same in all languages."""
PROSE = re.compile(r"[a-z]{2,} [a-z]{2,}")
KIND_NEEDED = re.compile(r"\b(bone|joint|material|animation|action|image|texture|surface|layer|shape key) '$", re.I)
"""Text before a name of something else than an object."""
NOT_OURS = re.compile(r"No such file|not permitted|denied|start byte|codec can't|Blender|Error|\.\w+$")
"""Texts of the system and of libraries, and names of files."""


def marked(text: str) -> str:
    """Return a template in the made-up language."""
    return f"{MARKS[0]}{text}{MARKS[1]}"


@pytest.fixture
def made_up_language(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Mark all templates; return a list that gets English parts that are not templates, and names without a kind."""
    new = Text.__new__
    english: list[str] = []

    def mark(cls: type[Text], template: str, *values: object, **fields: object) -> Text:
        is_copy = isinstance(template, Text) and not values
        text = new(cls, template if is_copy or not re.search("[a-z]", template) else marked(template), *values)
        quoted = set(text.quoted())
        pieces = Formatter().parse(text.template) if values else ()
        english.extend(
            text
            for (before, field, *_), value in zip(pieces, values, strict=False)
            if field is not None and type(value) is str and KIND_NEEDED.search(before)
        )
        english.extend(
            value
            for value in values
            if type(value) is str and value not in quoted and PROSE.search(value) and not NOT_OURS.search(value)
        )
        return text

    monkeypatch.setattr(Text, "__new__", mark)
    return english


def files() -> list[Path]:
    """Return the examples."""
    return [ROOT / "examples" / name for name in EXAMPLES]


@pytest.fixture
def chosen(request: pytest.FixtureRequest, tmp_path: Path) -> list[Path]:
    """Return the examples or some real files of all formats, and a damaged file."""
    damaged = tmp_path / "damaged.mesh"
    damaged.write_bytes((ROOT / "examples" / "lamp.mesh").read_bytes()[:400])
    if request.param == "examples":
        return [*files(), damaged]
    samples = request.getfixturevalue("samples")
    real = sorted(path for path in samples.rglob("*") if path.suffix in KINDS)
    return [*real[:: max(1, len(real) // SAMPLES)], damaged]


def without_texts(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with the codes of its messages instead of their sentences."""
    found = {key: value for key, value in record.items() if key not in TEXTS}
    for key in TEXTS & record.keys():
        if isinstance(record[key], list):
            found[key] = [
                {name: value for name, value in entry.items() if name in UNTRANSLATED}
                if isinstance(entry, dict)
                else ""
                for entry in record[key]
            ]
    return found


def sentences(record: dict[str, Any]) -> Iterator[str]:
    """Yield the sentences of a record."""
    for key in TEXTS & record.keys():
        for entry in record[key] if isinstance(record[key], list) else [record[key]]:
            yield entry.get("text", entry.get("message", "")) if isinstance(entry, dict) else entry


@pytest.mark.needs_bpy
@pytest.mark.parametrize(
    "chosen", ["examples", pytest.param("samples", marks=[pytest.mark.slow, pytest.mark.any_version])], indirect=True
)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_all_commands_give_the_same_in_another_language(
    command: tuple[str, ...],
    chosen: list[Path],
    meshferry: Callable[..., Any],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    def run(folder: str) -> Any:
        arguments = [str(tmp_path / folder) if text == "out" else text for text in command]
        return meshferry(*arguments, "--json", *chosen)

    plain = run("one")
    english = request.getfixturevalue("made_up_language")
    again = run("two")
    assert again.status == plain.status
    expected = [without_texts(record) for record in plain.entries]
    for record in expected:
        if "output" in record:
            record["output"] = record["output"].replace(str(tmp_path / "one"), str(tmp_path / "two"))
    assert [without_texts(record) for record in again.entries] == expected
    said = [text for record in again.entries for text in sentences(record)]
    assert not [text for text in said if MARKS[0] not in text and PROSE.search(text) and not NOT_OURS.search(text)]
    assert not english


def test_every_message_has_a_code(meshferry: Callable[..., Any]) -> None:
    checked = meshferry("check", "--json", *files())
    entries = [entry for record in checked.entries for entry in (*record["errors"], *record["warnings"])]
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", entry["code"]) for entry in entries), entries


def test_a_value_after_a_closing_quote_is_not_a_name():
    text = Text("'{}'{} of {} and '{}' of '{}'", "Lamp", ", twice", "Scene", "Roof", "House")
    assert list(text.quoted()) == ["Lamp", "Roof", "House"]


def loss(template: str, *values: object, **details: Any) -> Message:
    report = Report()
    report.loss("any-loss", template, *values, **details)
    return report.messages[0]


@pytest.mark.parametrize(
    ("message", "subjects"),
    [
        (loss("bone '{}' of '{}'", Named("bone", "A"), "B"), [("A", "bone"), ("B", "object")]),
        (loss("bone '{}' of '{}'", "A", "B"), [("A", "object"), ("B", "object")]),
        (loss("{} lost: {}", counted(1, "bone"), listed(of_kind("bone", "AB"))), [("A", "bone"), ("B", "bone")]),
        (loss("it has no {}", "A", item="Roof"), [("Roof", "object")]),
        (loss("no texture", item=Named("material", "Wood")), [("Wood", "material")]),
        (
            loss("its image '{}'", Named("image", "A"), item=Text("Material '{}'", Named("material", "A"))),
            [("A", "material"), ("A", "image")],
        ),
        (
            warning(
                "any-loss", "{} of '{}'", Text("3 textures ({})", listed(of_kind("image", "B"))), "C", names=("D",)
            ),
            [("D", "object"), ("B", "image"), ("C", "object")],
        ),
    ],
)
def test_messages_say_what_they_are_about(message: Message, subjects: list[tuple[str, str]]) -> None:
    assert message.subjects() == subjects
    data = message.as_json()
    assert data["subjects"] == [{"kind": kind, "name": name} for name, kind in subjects]
    assert data["about"] == list(dict.fromkeys(name for name, _ in subjects))
    assert Message.from_json(data).as_json() == data


def test_losses_of_a_conversion_have_kinds(meshferry: Callable[..., Any], tmp_path: Path) -> None:
    source = ROOT / "examples" / "windmill.timbermesh"
    entries = meshferry("convert", "--json", "--to", "llmesh", "-o", tmp_path, source).entries
    messages = [message for entry in entries for message in entry.get("messages", ())]
    found = [(subject["kind"], subject["name"]) for message in messages for subject in message["subjects"]]
    assert {kind for kind, _ in found} > {"object"}, found
