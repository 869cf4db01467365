"""Families of formats that other add-ons offer: functions ``meshferry_formats`` of their modules."""

import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator

from ...io_formats import registry
from ...io_formats.core.format import Family

FUNCTION = "meshferry_formats"
"""Name of the function; it is called with the package of Meshferry and returns a family."""


def offers() -> Iterator[tuple[str, registry.Offer]]:
    """Yield the functions of the add-ons that are enabled, with the names of their modules."""
    bpy = sys.modules.get("bpy")
    for name in bpy.context.preferences.addons.keys() if hasattr(bpy, "context") else ():
        function = getattr(sys.modules.get(name), FUNCTION, None)
        if function is not None:
            yield name, function


def add() -> list[Family]:
    """Add the families of the add-ons that were enabled since the last call; return them."""
    return registry.add(offers())


def files() -> list[tuple[str, str]]:
    """Return the modules of the add-ons with formats and their files, for :func:`load` in another process."""
    return [(name, str(sys.modules[name].__file__)) for name, _ in offers()]


def load(modules: Iterable[tuple[str, str]]) -> None:
    """Add the families of add-ons that are not enabled in this process."""
    registry.add([(name, lambda package, own=(name, file): _module(*own)(package)) for name, file in modules])


def _module(name: str, file: str) -> registry.Offer:
    """Import a module of an add-on; return its function."""
    if name not in sys.modules:
        folder = [os.path.dirname(file)] if os.path.basename(file) == "__init__.py" else None
        spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=folder)
        if spec is None or spec.loader is None:
            raise ImportError(f"{file} is not a module")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    found: registry.Offer = getattr(sys.modules[name], FUNCTION)
    return found
