"""The translation context of the add-on's texts.

In Blender's default context common words ("Scale", "Geometry") already have translations, which would make a dialog
half translated.
"""

import inspect

import bpy

CONTEXT = "Meshferry"
_PACKAGE = __package__.rsplit(".", 2)[0]


def declared_properties(cls: type) -> list[dict[str, object]]:
    """Return the keyword arguments of the properties that a class and its bases in this package declare."""
    bases = [base for base in cls.__mro__ if base.__module__.startswith(f"{_PACKAGE}.")]
    declared = [value for base in bases for value in inspect.get_annotations(base).values()]
    return [value.keywords for value in declared if hasattr(value, "keywords")]


def add_context(cls: type) -> None:
    """Use :data:`CONTEXT` for the names of a class and its properties. Call it before registration."""
    if issubclass(cls, bpy.types.Operator | bpy.types.Panel | bpy.types.Menu):
        cls.bl_translation_context = CONTEXT
    for keywords in declared_properties(cls):
        keywords.setdefault("translation_context", CONTEXT)
