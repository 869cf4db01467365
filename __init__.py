"""Meshferry: meshes, armatures, shape keys, vertex groups and actions between Blender and game formats."""


def register():
    from .blender_data import properties
    from . import operators

    properties.register()
    operators.register()


def unregister():
    from .blender_data import properties
    from . import operators

    operators.unregister()
    properties.unregister()
