"""Translations of the user interface.

A dialog is completely in a language that has a file in ``translations/``, or completely in English; see
:mod:`..blender_data.translation_context`. ``translations/template.json`` lists all texts. A translation is a copy of it
named after its locale (``de_DE.json``) with a translated value for each key; ``tests/examples/translation_template.py``
generates the template.

Texts about the content of files (warnings, findings, causes of failures) come from layers that compose them in English;
see :mod:`.composed_texts`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import bpy
from bpy.app.translations import pgettext_iface, pgettext_rpt

from ..blender_data.translation_context import CONTEXT, add_context
from .composed_texts import ComposedTexts

FOLDER = Path(__file__).resolve().parent.parent / "translations"
TEMPLATE = "template.json"
_DEFAULT_CONTEXT = "*"
_PACKAGE = __package__.rpartition(".")[0]


def iface_(text: str) -> str:
    """Return the translation of an interface text, which may be composed of templates, in Blender's language."""
    return _translated(text, pgettext_iface)


def rpt_(text: str) -> str:
    """Return the translation of a report text, which may be composed of templates, in Blender's language."""
    return _translated(text, pgettext_rpt)


def _translated(text: str, look_up: Callable[[str, str], str]) -> str:
    # Blender raises an error for a null character, which a name in a file may contain.
    found = text if "\0" in text else look_up(text, CONTEXT)
    return found if found != text else composed_texts().translated(text, lambda template: look_up(template, CONTEXT))


@cache
def composed_texts() -> ComposedTexts:
    """Return the templates of all translations; without a translation there are none."""
    return ComposedTexts(english for texts in load().values() for _context, english in texts)


def classes_factory(classes: Sequence[type]) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return functions that register and unregister classes, whose names are translated in :data:`CONTEXT`."""
    for cls in classes:
        add_context(cls)
    return bpy.utils.register_classes_factory(classes)


def load(folder: Path = FOLDER) -> dict[str, dict[tuple[str, str], str]]:
    """Return the translations in a folder: locale, then context and English text, then the translated text."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        if path.name != TEMPLATE:
            texts = json.loads(path.read_text("utf-8"))
            # Blender looks up tooltips in the default context.
            found[path.stem] = {
                (context, english): text for english, text in texts.items() for context in (CONTEXT, _DEFAULT_CONTEXT)
            }
    return found


def register() -> None:
    """Register the translations in Blender."""
    bpy.app.translations.register(_PACKAGE, load())


def unregister() -> None:
    """Remove the translations."""
    bpy.app.translations.unregister(_PACKAGE)
