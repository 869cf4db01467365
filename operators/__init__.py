"""What artists touch: import and export operators, file handlers, menus, panels."""


def _modules():
    from . import (
        export_timbermesh,
        import_timbermesh,
        mesh_normals,
        timbermesh_check,
        timbermesh_objects,
        timbermesh_panel,
    )

    return (
        import_timbermesh,
        export_timbermesh,
        mesh_normals,
        timbermesh_objects,
        timbermesh_check,
        timbermesh_panel,
    )


def register():
    """Register everything, module by module."""
    for module in _modules():
        module.register()


def unregister():
    """Take everything off again, in reverse."""
    for module in reversed(_modules()):
        module.unregister()
