"""The pages of the guides in the packages: plain HTML whose links lead somewhere."""

from __future__ import annotations

import importlib.util
import shutil
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
LARGEST = 800_000
"""Bytes of all pages; the packages have 10 MB."""


class Page(HTMLParser):
    """What a page has and links to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.addresses: list[tuple[str, str]] = []
        self.anchors: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.addresses += [(name, value or "") for name, value in attrs if name in {"href", "src"}]
        self.anchors += [value or "" for name, value in attrs if name == "id"]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("guide_pages", ROOT / "scripts" / "guide_pages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    """Return the parsed pages of a copy of the documentation, by path."""
    folder = tmp_path_factory.mktemp("package")
    for name in ("docs", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.html", "__pycache__"))
    shutil.copy(ROOT / "README.md", folder)
    return {path: Page(path) for path in script.write_pages(folder / "docs")}


def test_pages_are_plain(pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        assert not page.tags & {"script", "iframe", "object", "embed", "link", "form"}, path.name
        assert not {name for name in page.attributes if name.startswith("on")}, path.name
        assert {"h1", "nav", "main", "title"} <= page.tags, path.name
        assert not [address for name, address in page.addresses if name == "src" and urlsplit(address).scheme]
    assert sum(path.stat().st_size for path in pages) < LARGEST


def test_links_lead_to_pages_and_anchors(pages: dict[Path, Page]) -> None:
    followed = 0
    for path, page in pages.items():
        assert len(set(page.anchors)) == len(page.anchors), path.name
        for _, address in page.addresses:
            parts = urlsplit(address)
            if parts.scheme:
                assert parts.scheme == "https", address
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file() and target.suffix != ".md", f"{path.name}: {address}"
            if parts.fragment:
                assert parts.fragment in pages[target].anchors, f"{path.name}: {address}"
                followed += 1
    assert followed > 20


def test_every_guide_has_a_page(script: ModuleType, pages: dict[Path, Page]) -> None:
    docs = next(path.parents[1] for path in pages if path.parent.name == "users")
    assert set(script.GUIDES) <= {path.relative_to(docs).with_suffix("").as_posix() for path in pages}
    sources = {f"users/{path.stem}" for path in (ROOT / "docs" / "users").glob("*.md")}
    assert sources == {name for name in script.GUIDES if name.startswith("users/")}
