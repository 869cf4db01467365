"""Translations of the user interface.

A dialog is completely in a language that has a file in ``translations/``, or completely in English; see
:mod:`..blender_data.property_groups.translation_context`. ``translations/template.json`` lists all texts. A translation
is a copy of it named after its locale (``de_DE.json``) with a translated value for each key;
``tests/examples/translation_template.py`` generates the template.

Texts about the content of files (warnings, findings, causes of failures) are templates with values; see
:mod:`..io_formats.core.messages`. Each template is a key.
"""

import json
from collections.abc import Callable
from pathlib import Path

import bpy
from bpy.app.translations import pgettext_iface, pgettext_rpt

from ..blender_data.property_groups.translation_context import CONTEXT
from ..io_formats.core.messages import Text

FOLDER = Path(__file__).resolve().parent.parent / "translations"
TEMPLATE = "template.json"
_DEFAULT_CONTEXT = "*"
_PACKAGE = __package__.rpartition(".")[0]


def iface_(text: str) -> str:
    """Return the translation of an interface text in Blender's language."""
    return _translated(text, pgettext_iface)


def rpt_(text: str) -> str:
    """Return the translation of a report text in Blender's language."""
    return _translated(text, pgettext_rpt)


def _translated(text: str, look_up: Callable[[str, str], str]) -> str:
    # Blender raises an error for a null character, which a name in a file may contain.
    return Text(text).translated(lambda template: template if "\0" in template else look_up(template, CONTEXT))


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
