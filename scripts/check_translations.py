"""Check that all texts of the window can be translated.

Texts in layouts need the extension's own context. Without it Blender translates common words in the default context,
whatever the rest of the dialog is in. Messages of findings must be keys of `translations/template.json`.
"""

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests" / "examples"))
from translation_template import LAYERS, literals  # noqa: E402

LAYOUT_CALLS = {"label", "operator", "prop", "operator_menu_enum"}
MESSAGES = {"error", "warning", "warning_of", "loss", "loss_of", "change", "change_of", "note"}
"""Functions and methods that make messages. Their first or second argument is the template; a code has no space."""
FEWEST = 130
"""Texts of findings that the check must see at least."""


def texts_without_context(tree: ast.AST) -> Iterator[int]:
    """Yield the lines of texts in layouts that have no context of their own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LAYOUT_CALLS:
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            text = given.get("text")
            is_fixed = text is not None and not isinstance(text, ast.JoinedStr) and getattr(text, "value", "x")
            if is_fixed and not {"text_ctxt", "translate"} & given.keys():
                yield node.lineno


def messages_of_findings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of each message: a text, or a variable that the function gives a text."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            for argument in call.args[:2] if name in MESSAGES else ():
                yield from ((call.lineno, text) for text in texts_of(argument, function) if re.search("[a-z] ", text))


def texts_of(value: ast.expr, function: ast.AST) -> set[str]:
    """Return the templates of a value; those of a variable are all that the function assigns to it."""
    if not isinstance(value, ast.Name):
        return set(literals(value))
    given = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
    return {
        text
        for node in given
        if any(isinstance(target, ast.Name) and target.id == value.id for target in node.targets)
        for text in texts_of(node.value, function)
    }


def main() -> int:
    """Print each text that cannot be translated; return 1 if there is one."""
    failures = []
    for path in sorted((ROOT / "operators").rglob("*.py")):
        lines = texts_without_context(ast.parse(path.read_text(encoding="utf-8")))
        failures += [f"{path.relative_to(ROOT)}:{line}: the text needs 'text_ctxt'" for line in lines]
    keys = json.loads((ROOT / "translations" / "template.json").read_text(encoding="utf-8")).keys()
    seen = 0
    for path in sorted(path for layer in LAYERS for path in (ROOT / layer).rglob("*.py")):
        code = path.read_text(encoding="utf-8")
        for line, text in messages_of_findings(ast.parse(code)) if "messages import" in code else ():
            seen += 1
            if text not in keys:
                failures.append(f"{path.relative_to(ROOT)}:{line}: '{text}' is not in the template")
    if seen < FEWEST:
        failures.append(f"only {seen} messages of findings were found; {FEWEST} are expected at least")
    print("\n".join(failures), end="\n" if failures else "")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
