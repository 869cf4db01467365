"""Make HTML pages of the guides, for the packages: the buttons in the preferences open them from disk.

    python scripts/guide_pages.py DOCS

Writes ``users/unigine.html`` beside ``users/unigine.md`` and so on, also for the pages that guides link to, such
as those of the file formats. The pages have no scripts and load nothing from elsewhere. markdown-it-py comes with rich,
on which Meshferry depends.
"""

from __future__ import annotations

import os
import re
import sys
from html import escape
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

GUIDES = (
    "users/formats",
    "users/import_and_export",
    "users/unigine",
    "users/unigine_projects",
    "users/unigine_characters",
    "users/timbermesh",
    "users/second_life",
    "users/second_life_animation",
    "users/second_life_shapes",
    "users/opensim_regions",
    "users/mesh_serializer",
    "users/reload",
    "users/conversion",
    "users/batch",
    "users/library",
)
"""Paths of the guides below ``docs`` in the order of the navigation, here and on the documentation site."""

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --link: #1a5fb4 }
@media (prefers-color-scheme: dark) { :root { --link: #7ab3ff } }
body { font: 16px/1.55 system-ui, sans-serif; margin: 0 auto; max-width: 72rem; padding: 1rem; display: flex; gap: 2rem;
  flex-wrap: wrap }
nav { flex: 0 0 13rem; font-size: 0.9rem } nav ul { list-style: none; padding: 0 } nav li { margin: 0.3rem 0 }
main { flex: 1 1 32rem; min-width: 0 }
a { color: var(--link) } nav a[aria-current] { color: inherit; font-weight: bold; text-decoration: none }
h1, h2, h3 { line-height: 1.2 } h2 { border-bottom: 1px solid var(--line); padding-bottom: 0.2rem; margin-top: 2rem }
img { max-width: 100%; height: auto }
table { border-collapse: collapse; display: block; overflow-x: auto; font-size: 0.92rem }
th, td { border: 1px solid var(--line); padding: 0.3rem 0.6rem; text-align: left; vertical-align: top }
code, pre { font: 0.88em/1.45 ui-monospace, monospace; background: var(--soft); border-radius: 4px }
code { padding: 0.1em 0.3em } pre { padding: 0.7rem; overflow-x: auto } pre code { background: none; padding: 0 }
"""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title} – Meshferry</title>
<style>{style}</style>
</head>
<body>
<nav><strong>Meshferry</strong><ul>
{entries}
</ul></nav>
<main>
{body}</main>
</body>
</html>
"""


def write_pages(docs: Path) -> list[Path]:
    """Write the pages of the guides in a folder and of the pages they link to; return their paths."""
    markdown = MarkdownIt("commonmark").enable("table")
    parsed: dict[Path, list[Token]] = {}
    waiting = [docs / f"{name}.md" for name in GUIDES]
    for source in waiting:
        if source not in parsed:
            parsed[source] = markdown.parse(source.read_text("utf-8"))
            linked = [_target(source, token) for token in _inline(parsed[source]) if token.type == "link_open"]
            waiting += [path for path in linked if path is not None and path.suffix == ".md" and docs in path.parents]
    titles = {source: _set_anchors(tokens) for source, tokens in parsed.items()}
    for source, tokens in parsed.items():
        _set_links(source, tokens, set(parsed))
        entries = "\n".join(_entry(source, docs / f"{name}.md", titles[docs / f"{name}.md"]) for name in GUIDES)
        body = markdown.renderer.render(tokens, markdown.options, {})
        text = PAGE.format(title=escape(titles[source]), style=STYLE, entries=entries, body=body)
        source.with_suffix(".html").write_text(text, "utf-8")
    return [source.with_suffix(".html") for source in parsed]


def _entry(source: Path, guide: Path, title: str) -> str:
    """Return the entry of a guide in the navigation of a page."""
    address = Path(os.path.relpath(guide.with_suffix(".html"), source.parent)).as_posix()
    current = ' aria-current="page"' if guide == source else ""
    return f'<li><a href="{address}"{current}>{escape(title)}</a></li>'


def _inline(tokens: list[Token]) -> list[Token]:
    """Return the tokens within paragraphs, headings and cells."""
    return [child for token in tokens for child in token.children or ()]


def _target(source: Path, link: Token) -> Path | None:
    """Return the existing file that a link leads to, or None."""
    address = urlsplit(str(link.attrGet("href")))
    if address.scheme or not address.path:
        return None
    path = Path(source.parent, address.path).resolve()
    return path if path.exists() else None


def _set_anchors(tokens: list[Token]) -> str:
    """Give headings the anchors that links in the sources use, those of GitHub; return the title of the page."""
    taken: dict[str, int] = {}
    titles = []
    for heading, content in pairwise(tokens):
        if heading.type == "heading_open":
            titles.append("".join(child.content for child in content.children or ()))
            anchor = re.sub(r"[^\w\- ]", "", titles[-1].lower()).replace(" ", "-")
            number = taken[anchor] = taken.get(anchor, -1) + 1
            heading.attrSet("id", f"{anchor}-{number}" if number else anchor)
    return titles[0]


def _set_links(source: Path, tokens: list[Token], pages: set[Path]) -> None:
    """Let links among the sources lead to the pages; links to files that are not there become plain text."""
    is_hidden = False
    for token in _inline(tokens):
        if token.type == "link_open":
            address = urlsplit(str(token.attrGet("href")))
            target = _target(source, token)
            is_hidden = bool(address.path) and not address.scheme and target is None
            if target is not None and target.suffix == ".md":
                is_hidden = target not in pages
                token.attrSet("href", address._replace(path=address.path.removesuffix(".md") + ".html").geturl())
        if token.type in {"link_open", "link_close"}:
            token.hidden = is_hidden


if __name__ == "__main__":
    for page in write_pages(Path(sys.argv[1]).resolve()):
        print(page)
