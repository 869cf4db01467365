"""The documentation agrees with the code, and holds nothing that only one machine knows."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
from pathlib import Path

import pytest
from generated_tables import ROOT, TABLES, with_table
from meshferry.cli.main import COMMANDS
from translation_template import literals

pytestmark = pytest.mark.any_version

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FLOORS = ("blender_data", "cli", "io_formats", "library", "operators")
MOST_PICTURE_BYTES = 300_000


def text_of(page: Path) -> str:
    return page.read_text("utf-8")


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@functools.cache
def texts_of_code() -> str:
    code = [ast.parse(path.read_text("utf-8")) for floor in FLOORS for path in (ROOT / floor).rglob("*.py")]
    return "\n".join(text for tree in code for node in ast.walk(tree) for text in literals(node))


@pytest.mark.parametrize(("page", "name"), TABLES)
def test_generated_tables_are_fresh(page: str, name: str) -> None:
    text = text_of(ROOT / page)
    fresh = with_table(text, name, TABLES[page, name]())
    assert text == fresh, "run tests/examples/generated_tables.py"


@pytest.mark.slow
def test_the_page_of_messages_lists_each_code_once() -> None:
    spec = importlib.util.spec_from_file_location("messages_page", ROOT / "scripts" / "messages_page.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \| (.*) \|$", script.page(), re.MULTILINE)
    codes = [code for code, _kinds, _sentences in rows]
    assert len(codes) > 450 and codes == sorted(set(codes))
    kinds = {kind for _code, kinds, _sentences in rows for kind in kinds.split(", ")}
    assert kinds == {"loss", "change", "note", "warning", "error"}
    found = {code: (kinds, sentences) for code, kinds, sentences in rows}
    assert found["zero-rotation"] == ("error", "its rotation is all zero")


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_and_pictures_exist(page: Path) -> None:
    text = text_of(page)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        if anchor:
            assert anchor in {anchor_of(heading) for heading in headings(text_of(linked))}, target
        if linked.suffix == ".png":
            assert linked.stat().st_size <= MOST_PICTURE_BYTES, target


def headings(text: str) -> list[str]:
    return re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)


def anchor_of(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_exist(page: Path) -> None:
    text = text_of(page)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    code = re.findall(r"`([^`\n]+)`", text) + re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    for line in "\n".join(code).splitlines():
        if match := re.match(r"make ([a-z][a-z-]*)", line):
            assert match[1] in targets, line
        if match := re.match(r"(?:\S*/)?(?:blender --command )?meshferry ([a-z]+)", line):
            assert match[1] in COMMANDS, line


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_paths_exist(page: Path) -> None:
    folders = r"docs|examples|scripts|tests|\.ci|cli|io_formats|library|operators"
    for path in re.findall(rf"`((?:{folders})/[\w./]+)`", text_of(page)):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_nothing_of_one_machine(page: Path) -> None:
    text = text_of(page)
    assert not re.search(r"(?<![\w.])/(?:home|root|work|tmp|opt|usr|Users)/|[A-Z]:\\(?!Program Files\\)", text)
    prose = [line for line in text.splitlines() if not line.startswith("|")]
    assert max(map(len, prose)) <= 120


@pytest.mark.slow
@pytest.mark.parametrize(
    ("guide", "least"),
    [
        ("docs/users/import_and_export.md", 10),
        ("docs/users/timbermesh.md", 15),
        ("docs/users/unigine.md", 15),
        ("docs/users/second_life.md", 15),
        ("docs/users/mesh_serializer.md", 15),
        ("docs/users/second_life_animation.md", 4),
        ("docs/users/opensim_regions.md", 15),
    ],
)
def test_troubleshooting_quotes_what_the_code_says(guide: str, least: int) -> None:
    source = texts_of_code()
    _, _, troubleshooting = text_of(ROOT / guide).partition("## Troubleshooting")
    rows = re.findall(r"^\| (`.*?`.*?) \|", troubleshooting, re.MULTILINE)
    assert len(rows) > least
    for row in rows:
        for quoted in re.findall(r"`([^`]+)`", row):
            assert quoted.rstrip(" …") in source, quoted


def test_docstrings_refer_to_sections_that_exist() -> None:
    page = ROOT / "docs/formats/timbermesh.md"
    sections = {heading.lower() for heading in headings(text_of(page))}
    wanted = re.compile(
        r"docs/formats/timbermesh\.md[,:] ([^).\n]+)|\(page, ([^;)\n]+)[;)]|[Pp]age docs\S+\.md, (\w+)\."
    )
    found = 0
    for path in (ROOT / "io_formats" / "timbermesh").rglob("*.py"):
        for groups in wanted.findall(path.read_text("utf-8")):
            for section in re.split(r",| and ", next(filter(None, groups))):
                found += 1
                assert section.strip().lower() in sections, f"{path.name}: {section}"
    assert found > 8


@pytest.mark.parametrize("family", ["unigine", "second_life", "mesh_serializer"])
def test_docstrings_refer_to_numbered_sections_that_exist(family: str) -> None:
    found = 0
    for path in (ROOT / "io_formats" / family).rglob("*.py"):
        page = "second_life_animation" if {"animation", "bvh"} & set(path.parts) else family
        page = family if family != "second_life" else page
        of_folder = {"project": "unigine_projects", "scene": "unigine_scenes", "collada": "collada"}
        of_folder |= {"shape_file": "second_life_shapes"}
        page = of_folder.get(path.parent.name, page)
        page = "second_life_shapes" if path.stem in {"sliders", "classic_body", "armature_sliders"} else page
        sections = {heading.split()[0].rstrip(".") for heading in headings(text_of(ROOT / f"docs/formats/{page}.md"))}
        for several in re.findall(r"[Ss]ections? ((?:\d+(?:\.\d+)?(?:, | and | to )?)+)", path.read_text("utf-8")):
            for section in re.findall(r"\d+(?:\.\d+)?", several):
                found += 1
                assert section in sections, f"{path.name}: section {section}"
    assert found > 15


def test_tests_that_pages_name_exist() -> None:
    """The answer to the public request names a test for each incompatibility."""
    text = text_of(ROOT / "docs/developers/second_life_rfp.md")
    tables = text.partition("\n## The least changes")[0].partition("\n### Armatures")[2]
    rows = [line for line in tables.splitlines() if line.startswith("|") and not line.startswith(("|---", "| cause"))]
    assert len(rows) > 35
    for row in rows:
        named_tests = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", row)
        assert named_tests, row
        for path, test in named_tests:
            assert f"\ndef {test}(" in text_of(ROOT / path), f"{path}::{test}"
