"""The user interface: import and export operators, file handlers, menus, panels."""


def _modules():
    from . import (
        clip_choice,
        export_again,
        export_refusal,
        finding_fixes,
        finding_list,
        finding_selection,
        format_operators,
        last_report,
        mesh_normals,
        preferences,
        reload_file,
        surfaces,
        translations,
    )

    return (
        translations,
        preferences,
        clip_choice,
        last_report,
        format_operators,
        export_again,
        reload_file,
        mesh_normals,
        surfaces,
        finding_list,
        finding_selection,
        finding_fixes,
        export_refusal,
        format_operators.FamilyPanels,
    )


def register():
    """Register all modules in order."""
    for module in _modules():
        module.register()


def unregister():
    """Unregister all modules in reverse order."""
    for module in reversed(_modules()):
        module.unregister()
