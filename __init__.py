"""Meshferry: meshes, armatures, shape keys, vertex groups and actions between Blender and game formats."""


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
