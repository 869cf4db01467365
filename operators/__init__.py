"""The user interface: import and export operators, file handlers, menus, panels."""


def _modules():
    from . import preferences, reports
    from .exporting import clip_choice, export_again, export_on_save, export_refusal
    from .findings import finding_fixes, finding_list, finding_selection
    from .importing import reload_file
    from .object_tools import mesh_normals, surfaces

    return (
        preferences,
        clip_choice,
        reports,
        export_again,
        export_on_save,
        reload_file,
        mesh_normals,
        surfaces,
        finding_list,
        finding_selection,
        finding_fixes,
        export_refusal,
    )


def register():
    """Register the translations, all modules in order, then the families of formats."""
    from . import format_operators, preferences, registration, translations
    from .exporting import save_queue

    translations.register()
    for module in _modules():
        registration.register(*registration.parts_of(module))
    format_operators.register()
    save_queue.switch(on=preferences.exports_on_save_enabled())


def unregister():
    """Unregister them in reverse order."""
    from . import format_operators, registration, translations
    from .exporting import save_queue

    save_queue.switch(on=False)
    format_operators.unregister()
    for module in reversed(_modules()):
        registration.unregister(*registration.parts_of(module))
    translations.unregister()
