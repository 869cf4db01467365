"""Collada: names, capabilities, options, and recognition by the root element."""

from dataclasses import replace

from ...core.capabilities import ANY_NUMBER
from ...core.format import FileFormat, modules_of
from ...core.options import FILES_AS_LEVELS, PARTNER_FILES, Options, option, shared
from ...core.recognition import Match, has_root
from ...passes.lod_names import FILE_SUFFIXES
from ..options import _CAPABILITIES, JOINTS, REST


class ReadOptions(Options):
    """The options for reading Collada files."""

    use_unit_and_axis: bool = option(
        "Apply Unit and Axis",
        "Apply the unit and the up axis of the file to the vertices; if off, objects are scaled and rotated",
        default=True,
        section="Objects",
    )
    skeleton_joints: str = shared(JOINTS)
    skeleton_rest: str = shared(REST)
    use_partner_files: bool = shared(PARTNER_FILES)
    use_files_as_levels: bool = shared(FILES_AS_LEVELS)


ZIP = b"PK\x03\x04"
_NAME = 30
"""Offset of the name of the first file in a zip file."""


def sniff(head: bytes, size: int) -> Match:
    """Return whether the root element is COLLADA, in any namespace, or a zip file begins as those with one do."""
    if has_root(head, "COLLADA"):
        return Match.SIGNATURE
    text = head.lower() if head.startswith(ZIP) else b""
    if b".dae" in text or text.startswith(b"manifest.xml", _NAME):
        return Match.SIGNATURE
    return Match.NONE


SECOND_LIFE_COLLADA = FileFormat(
    name="second_life_collada",
    label="Collada",
    extensions=(".dae", ".zae"),
    capabilities=replace(
        _CAPABILITIES, uv_layers=8, color_layers=8, splits_vertices=False, influences=ANY_NUMBER, node_hierarchy=True
    ),
    modules=modules_of(__package__),
    is_written=False,
    import_options=ReadOptions,
    rewritten_as="second_life_upload",
    partner_suffixes=FILE_SUFFIXES,
)
