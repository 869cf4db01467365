"""The user interface: import and export operators, file handlers, menus, panels."""


def _modules():
    from . import format_operators, last_report, preferences, translations
    from .exporting import clip_choice, export_again, export_refusal
    from .findings import finding_fixes, finding_list, finding_selection
    from .importing import reload_file
    from .object_tools import mesh_normals, surfaces

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
