"""Translation of texts that the layers below compose in English: findings, warnings, causes of failures.

Those layers do not know Blender's language, since the same texts go to the command line and into JSON. A text is
therefore parsed when it is shown: the keys of a translation are the f-strings that made it, with ``{}`` for each value.
Values are parsed likewise, and those in quotes are names, which stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

_NAME = re.compile(r"(?<!\w)'(.*?)'(?!\w)", re.DOTALL)
_MARK = 0xF0000
"""First of the private characters that stand for the names of a text while it is parsed."""
_MARKS = "[\U000f0000-\U000fffff]"
_SENTENCES = re.compile(r"[;:] |\n|^ *\(| *\)$|^ +| +$")
"""Text between messages that are composed without an f-string of their own."""
_PHRASES = re.compile(r", | and |^[0-9,]+ ")
"""The same for parts of a message."""
_MOST_SPLITS = 4
"""Maximum number of separators at which a text is split, which bounds the time that long texts take."""
_LONGEST_MESSAGE = 400
"""Maximum length of a message without its names; longer texts are several messages, or stay English."""

_Parsed = tuple[int, str]
"""Number of letters that were not translated, and the translated text."""


class ComposedTexts:
    """The English keys of translations, by which texts are parsed."""

    def __init__(self, keys: Iterable[str]) -> None:
        self.constants: dict[str, str] = {}
        self.quoted: set[str] = set()
        """Quoted words of keys, which are not names."""
        self.templates: list[tuple[str, str, list[re.Pattern[str]]]] = []
        """Literal text that excludes most templates without a search, template, and patterns of its texts."""
        for key in sorted(set(keys)):
            forms = key, key[:1].swapcase() + key[1:]
            self.constants.update(dict.fromkeys(forms, key))
            self.quoted.update(_NAME.findall(key))
            if "{}" in key:
                parts = [list(map(re.escape, form.split("{}"))) for form in forms]
                patterns = [re.compile(value.join(found), re.DOTALL) for found in parts for value in ("(.*?)", "(.*)")]
                first, *others = key.split("{}")
                self.templates.append((max(first[1:], *others, key=len), key, patterns))
        self.templates.sort(key=lambda template: len(template[0]), reverse=True)

    def translated(self, text: str, look_up: Callable[[str], str]) -> str:
        """Return a text with all parts translated that have a key; ``look_up`` returns the translation of a key."""
        names: list[str] = []

        def mark(match: re.Match[str]) -> str:
            if match[1] in self.quoted:
                return match[0]
            names.append(match[1])
            return f"'{chr(_MARK + len(names) - 1)}'"

        marked = _NAME.sub(mark, text)
        parts = [marked] if len(marked) <= _LONGEST_MESSAGE else re.split("(; |\n)", marked)
        parser = _Parser(self, look_up)
        found = "".join(parser.parse(part)[1] if len(part) <= _LONGEST_MESSAGE else part for part in parts)
        return re.sub(_MARKS, lambda match: names[ord(match[0]) - _MARK], found)


class _Parser:
    """Parser of one text. Of all ways to compose it, it chooses the one that leaves the fewest letters in English."""

    def __init__(self, texts: ComposedTexts, look_up: Callable[[str], str]) -> None:
        self.texts = texts
        self.look_up = look_up
        self.parsed: dict[str, _Parsed] = {}

    def parse(self, text: str) -> _Parsed:
        """Return the translation of a text or a part of it."""
        if text not in self.parsed:
            key = self.texts.constants.get(text)
            self.parsed[text] = sum(map(str.isalpha, text)), text  # for a text that would be a value of itself
            self.parsed[text] = self._parse_composed(text) if key is None else (0, self.look_up(key))
        return self.parsed[text]

    def _parse_composed(self, text: str) -> _Parsed:
        best = self.parsed[text]
        compositions = self._compositions(text)
        while best[0] and (found := next(compositions, None)):
            template, values = found
            parts = [self.parse(value) for value in values]
            missed = sum(part[0] for part in parts)
            if missed < best[0]:
                best = missed, template.format(*(part[1] for part in parts))
        return best

    def _compositions(self, text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the translated templates that the text may be made of, and their values, the most probable first."""
        for values in _splits(_SENTENCES, text):
            first, separator, _rest = values
            missed = 0 if re.search(r"[;:] |\([^)]*$", first) else self.parse(first)[0] or first.isalpha()
            if separator == ": " and missed:  # a name without quotes, to which "(physics)" may be added
                name, *note = re.split(r"(?= \()", first, maxsplit=1)
                self.parsed[first] = missed, name + self.parse("".join(note))[1]
            yield "{}{}{}", values
        for literal, template, patterns in self.texts.templates:
            if literal in text:
                for match in filter(None, (pattern.fullmatch(text) for pattern in patterns)):
                    yield self.look_up(template), match.groups()
        for values in _splits(_PHRASES, text):
            yield "{}{}{}", values


def _splits(separator: re.Pattern[str], text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the text before each separator, the separator, and the text after it."""
    for found in islice(separator.finditer(text), _MOST_SPLITS):
        yield text[: found.start()], found[0], text[found.end() :]
