"""The user interface: import and export operators, file handlers, menus, panels."""


def _modules():
    from . import preferences, reports
    from .files import clip_export, export_base, export_on_save, reexport, reload_file
    from .findings import finding_fixes, finding_list, finding_selection, mesh_tools

    return (
        preferences,
        clip_export,
        reports,
        reexport,
        export_on_save,
        reload_file,
        mesh_tools,
        finding_list,
        finding_selection,
        finding_fixes,
        export_base,
    )


def register():
    """Register the translations, all modules in order, then the families of formats."""
    from . import format_operators, preferences, registration, translations
    from .files import save_queue

    translations.register()
    for module in _modules():
        registration.register(*registration.parts_of(module))
    format_operators.register()
    save_queue.switch(on=preferences.exports_on_save_enabled())


def unregister():
    """Unregister them in reverse order."""
    from . import format_operators, registration, translations
    from .files import save_queue

    save_queue.switch(on=False)
    format_operators.unregister()
    for module in reversed(_modules()):
        registration.unregister(*registration.parts_of(module))
    translations.unregister()
