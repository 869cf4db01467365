"""The user interface: import and export operators, file handlers, menus, panels."""


def _modules():
    from . import (
        add_avatar,
        clip_choice,
        export_again,
        export_mesh_serializer,
        export_refusal,
        export_second_life,
        export_timbermesh,
        export_unigine,
        finding_fixes,
        finding_list,
        finding_selection,
        import_mesh_serializer,
        import_second_life,
        import_timbermesh,
        import_unigine,
        mesh_normals,
        mesh_serializer_check,
        mesh_serializer_panel,
        preferences,
        second_life_check,
        second_life_levels,
        second_life_panel,
        second_life_weights,
        surfaces,
        timbermesh_check,
        timbermesh_objects,
        timbermesh_panel,
        translations,
        unigine_check,
        unigine_panel,
    )

    return (
        translations,
        preferences,
        import_timbermesh,
        export_timbermesh,
        import_unigine,
        clip_choice,
        export_unigine,
        import_second_life,
        export_second_life,
        import_mesh_serializer,
        export_mesh_serializer,
        export_again,
        add_avatar,
        mesh_normals,
        surfaces,
        finding_list,
        finding_selection,
        finding_fixes,
        export_refusal,
        timbermesh_objects,
        timbermesh_check,
        timbermesh_panel,
        unigine_check,
        unigine_panel,
        mesh_serializer_check,
        mesh_serializer_panel,
        second_life_check,
        second_life_levels,
        second_life_weights,
        second_life_panel,
    )


def register():
    """Register all modules in order."""
    for module in _modules():
        module.register()


def unregister():
    """Unregister all modules in reverse order."""
    for module in reversed(_modules()):
        module.unregister()
