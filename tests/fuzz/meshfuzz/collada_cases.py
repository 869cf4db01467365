"""Hostile Collada files: whole ones with other numbers, links and elements, and raw changes."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from xml.etree.ElementTree import Element, fromstring, tostring

from . import collada_seeds, raw

_WORDS = (
    *("0", "1", "-1", "2", "3", "7", "8", "100", "65536", "2147483648", "99999999999999999999", "0.5", "-2.5", "1e-7"),
    *("1e9", "1e39", "1e400", "nan", "inf", "-1.#IND", "1,5", "x", "1-2", "--1", "1.2.3", "1_0", "0x10", "\u0663", ""),
)
_NUMBER = re.compile(r"(?<=[\s>\"])-?[\d.]+(?=[\s<\"])")
_LINKS = ("source", "url", "target", "symbol", "material", "texture")
_VALUES = ("offset", "stride", "count", "set", "meter", "sid", "type", "semantic", "id", "name")
_SEEDS = collada_seeds.files()


def make(files: dict[str, bytes], rng: random.Random) -> tuple[bytes, str]:
    """Return a file and how it was made."""
    if files and rng.random() < 0.2:
        name = rng.choice(list(files))
        return raw.mutate(files[name], rng), f"raw changes to {name}"
    name = rng.choice(list(_SEEDS))
    data = _SEEDS[name]
    choice = rng.random()
    if choice < 0.3:
        return _with_numbers(data.decode(), rng).encode(), f"{name}, other numbers"
    if choice < 0.8:
        return _with_elements(data, rng), f"{name}, other elements"
    if choice < 0.95:
        return raw.mutate(data, rng), f"{name}, raw changes"
    return data, f"{name}, unchanged"


def _with_numbers(text: str, rng: random.Random) -> str:
    """Replace some of the numbers of all texts and attributes."""
    chosen = {rng.randrange(max(1, len(_NUMBER.findall(text)))) for _ in range(rng.choice((1, 1, 2, 5, 30)))}
    if rng.random() < 0.03:
        depth = rng.choice((150, 250, 1200))
        text = text.replace("</visual_scene>", f"{'<node>' * depth}{'</node>' * depth}</visual_scene>")
    count = iter(range(len(text)))
    return _NUMBER.sub(lambda found: rng.choice(_WORDS) if next(count) in chosen else found[0], text)


def _with_elements(data: bytes, rng: random.Random) -> bytes:
    """Change elements of the tree."""
    root = fromstring(data)
    for _ in range(rng.choice((1, 1, 2, 4, 12))):
        rng.choice(_CHANGES)(root, rng)
    return tostring(root, encoding=rng.choice(("utf-8", "utf-8", "utf-16", "iso-8859-1")))


def _pair(root: Element, rng: random.Random) -> tuple[Element, Element]:
    """Return an element and its parent."""
    pairs = [(child, parent) for parent in root.iter() for child in parent]
    return rng.choice(pairs) if pairs else (root, root)


def _remove(root: Element, rng: random.Random) -> None:
    child, parent = _pair(root, rng)
    if child is not root:
        parent.remove(child)


def _repeat(root: Element, rng: random.Random) -> None:
    child, parent = _pair(root, rng)
    if sum(1 for _ in root.iter()) < 2_000 and child is not root:
        parent.extend([child] * rng.choice((1, 2, 20)))


def _swap(root: Element, rng: random.Random) -> None:
    """Exchange the content of two elements."""
    (one, _), (other, _) = _pair(root, rng), _pair(root, rng)
    if one in list(other.iter()) or other in list(one.iter()):
        return
    one.tag, other.tag = other.tag, one.tag


def _copy(root: Element, rng: random.Random) -> None:
    """Put an element into another one as well; not into itself, which would be endless."""
    (one, _), (other, _) = _pair(root, rng), _pair(root, rng)
    if other not in list(one.iter()) and sum(1 for _ in root.iter()) < 2_000:
        other.append(one)


def _link(root: Element, rng: random.Random) -> None:
    """Let a link lead elsewhere."""
    ids = [element.get("id", "") for element in root.iter() if element.get("id")]
    links = [(element, key) for element in root.iter() for key in _LINKS if key in element.attrib]
    if ids and links:
        element, key = rng.choice(links)
        element.set(key, rng.choice((f"#{rng.choice(ids)}", rng.choice(ids), "b.dae#x", "", "#")))


def _attribute(root: Element, rng: random.Random) -> None:
    given = [(element, key) for element in root.iter() for key in _VALUES if key in element.attrib]
    if given:
        element, key = rng.choice(given)
        if rng.random() < 0.3:
            del element.attrib[key]
        else:
            element.set(key, rng.choice((*_WORDS, "VERTEX", "JOINT", "POSITION", "mTorso", "box-mesh")))


def _text(root: Element, rng: random.Random) -> None:
    """Cut, repeat or replace words of a text."""
    element = rng.choice([element for element in root.iter() if (element.text or "").strip()] or [root])
    words = (element.text or "").split()
    at = rng.randrange(len(words) + 1)
    change = rng.choice((0, 1, 2))
    if change == 0:
        words = words[:at]
    elif change == 1:
        words[at : at + 1] = [rng.choice(_WORDS)] * rng.choice((1, 1, 3))
    else:
        words = (words * rng.choice((2, 5)))[:5_000]
    element.text = " ".join(words)


_CHANGES: tuple[Callable[[Element, random.Random], None], ...] = (
    *(_remove, _repeat, _swap, _copy, _link, _link, _attribute, _attribute, _text, _text, _text),
)
