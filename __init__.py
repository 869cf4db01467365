"""Meshferry: meshes, armatures, shape keys, vertex groups and actions between Blender and game formats.

For programs: :func:`read`, :func:`write`, :func:`convert`, :func:`check`, :func:`inspect` and :func:`formats` of files,
and :class:`Scene`, :class:`Node`, :class:`Mesh`, :class:`Skeleton` and :class:`Clip` for what is in them. They are
loaded on first use. In Blender, this package is an add-on.
"""

_HOMES = {
    "io_formats.core.errors": "MeshferryError MissingLibraryError",
    "io_formats.core.format": "FileFormat",
    "io_formats.core.messages": "Message",
    "library.conversion": "convert",
    "library.files": "Written check formats inspect read write",
    "library.mesh": "Mesh Weights",
    "library.scene": "Clip Node Scene Skeleton",
    "library.trimesh_exchange": "from_trimesh",
}
"""The names that are loaded on first use, by their module; ``__init__.pyi`` declares them."""


def __getattr__(name: str) -> object:
    """Load a name of the library."""
    from importlib import import_module

    if name == "__version__":
        return import_module(".cli.environment", __name__).version()
    for module, names in _HOMES.items():
        if name in names.split():
            found = globals()[name] = getattr(import_module(f".{module}", __name__), name)
            return found
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Return the names of the library, too."""
    return sorted({*globals(), *" ".join(_HOMES.values()).split(), "__version__"})


def register():
    """Register properties, operators and the command ``blender --command meshferry``."""
    from .blender_data.steps import without_collection

    with without_collection():
        from . import operators
        from .blender_data import properties
        from .cli import blender_command

        properties.register()
        operators.register()
        blender_command.register()


def unregister():
    """Take everything off again, in reverse."""
    from . import operators
    from .blender_data import properties
    from .cli import blender_command

    blender_command.unregister()
    operators.unregister()
    properties.unregister()
