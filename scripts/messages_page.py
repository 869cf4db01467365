"""Make the page of the documentation site that lists the codes of all messages, from the code that makes them."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests" / "examples"))
from translation_template import literals  # noqa: E402

LAYERS = ("io_formats", "blender_data", "operators", "cli", "library")
KINDS = frozenset({"loss", "loss_of", "change", "change_of", "note", "warning", "warning_of", "error", "report"})
"""Functions that make messages; ``report`` is one of them that is passed to a function."""
CODE = re.compile(r"(\{\}|[a-z0-9]+)(-[a-z0-9]+)+")
PAGE = """# Messages

The codes of all [messages](conversion.md#messages-as-json) of Meshferry. `{}` and `{:,}` stand for names and numbers.

"""


def page() -> str:
    """Return the page in Markdown."""
    return f"{PAGE}{messages_table()}\n"


def messages_table() -> str:
    """Return all codes of messages with their kinds and the sentences that they stand for."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for path in (path for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py"))):
        tree = ast.parse(path.read_text("utf-8"))
        for table in (node for node in ast.walk(tree) if isinstance(node, ast.Tuple) and node.elts):
            code, *texts = [text for value in (table.elts[0], *table.elts) for text in literals(value)] or [""]
            templates = [text for text in texts if "{}" in text]
            if CODE.fullmatch(code) and templates:
                kinds, sentences = found.setdefault(code, (set(), set()))
                kinds.update(
                    [value.attr.lower() for value in table.elts if isinstance(value, ast.Attribute)] or ["loss"]
                )
                sentences.update(templates)
        for function in ast.walk(tree):
            for call in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
                if isinstance(call, ast.Call) and len(call.args) > 1:
                    kind = getattr(call.func, "attr", getattr(call.func, "id", ""))
                    for code in literals(call.args[0]) if kind in KINDS else ():
                        if CODE.fullmatch(code):
                            kinds, sentences = found.setdefault(code, (set(), set()))
                            kinds.add(kind.removesuffix("_of") if kind != "report" else "warning")
                            sentences.update(_templates(call, function))
    rows = [["Code", "Kind", "Sentence"], ["---"] * 3]
    for code, (kinds, sentences) in sorted(found.items()):
        texts = " / ".join(sorted(sentence.replace("|", r"\|").strip() for sentence in sentences))
        rows.append([f"`{code}`", ", ".join(sorted(kinds)), texts])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _templates(call: ast.Call, function: ast.FunctionDef) -> Iterator[str]:
    """Yield the templates of a message: literals, or those that a variable was given last before the call."""
    value = call.args[1]
    given: list[tuple[int, ast.expr]] = []
    for node in ast.walk(function) if isinstance(value, ast.Name) else ():
        if isinstance(node, ast.Assign) and node.lineno < call.lineno:
            target, source = node.targets[0], node.value
            pairs = [(target, source)]
            if isinstance(target, ast.Tuple) and isinstance(source, ast.Tuple):
                pairs = list(zip(target.elts, source.elts, strict=True))
            given += [(node.lineno, text) for name, text in pairs if getattr(name, "id", "") == value.id]
    yield from literals(max(given, key=lambda pair: pair[0])[1] if given else value)
