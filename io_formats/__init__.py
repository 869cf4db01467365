"""File formats without Blender: bytes, documents and scenes."""

import importlib
import sys
from types import ModuleType
from typing import Any

_MOVED = {
    "capabilities": "core.capabilities",
    "errors": "core.errors",
    "files": "api",
    "findings": "core.findings",
    "formats": "registry",
    "options": "core.options",
    "scene": "core.scene",
}
"""Modules of version 0.1 and their present names. Scripts of users import them, so the old names keep working."""


class _MovedModule(ModuleType):
    """A module under its old name, which is imported under its present name when it is first used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(f"{__name__}.{_MOVED[self.__name__.rpartition('.')[2]]}"), name)


for _name in _MOVED:
    globals()[_name] = sys.modules[f"{__name__}.{_name}"] = _MovedModule(f"{__name__}.{_name}")
