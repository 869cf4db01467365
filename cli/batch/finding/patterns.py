"""Patterns for paths, as ``--match`` and ``--skip`` take them: the same on every system, whatever the case."""

from __future__ import annotations

import re


def compiled(pattern: str) -> re.Pattern[str]:
    """Return what :meth:`re.Pattern.fullmatch` tests paths with that have ``/`` between folders.

    ``*`` and ``?`` stand for letters of one name, ``[abc]`` and ``[!abc]`` for one letter, ``**`` for any folders.
    Without a ``/`` the pattern is for the file's name; one that ends with ``/`` is for all below a folder.
    """
    text = pattern.replace("\\", "/").removeprefix("./").lstrip("/")
    if "/" not in text:
        text = "**/" + text
    if text.endswith("/"):
        text += "**"
    *folders, last = text.split("/")
    steps = ["(?:[^/]+/)*" if folder == "**" else _of_name(folder) + "/" for folder in folders]
    return re.compile("".join(steps) + (".+" if last == "**" else _of_name(last)), re.IGNORECASE | re.DOTALL)


def _of_name(pattern: str) -> str:
    """Return the expression for one name of a path."""
    parts: list[str] = []
    rest = pattern
    while rest:
        if rest[0] == "*":
            parts.append("[^/]*")
            rest = rest.lstrip("*")
        elif rest[0] == "?":
            parts.append("[^/]")
            rest = rest[1:]
        elif found := re.match(r"\[(!?)(\]?[^\]]*)\]", rest):
            letters = re.sub(r"([\\\[\]^&~|])", r"\\\1", found[2])
            parts.append(f"(?!/)[{'^' if found[1] else ''}{letters}]" if letters else re.escape(found[0]))
            rest = rest[found.end() :]
        else:
            parts.append(re.escape(rest[0]))
            rest = rest[1:]
    return "".join(parts)
