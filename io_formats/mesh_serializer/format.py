"""MeshSerializer2: names, capabilities, options, and recognition by the exact size (formats page, section 4)."""

from collections.abc import Callable

from ..core.capabilities import Capabilities
from ..core.format import Family, FileFormat, modules_of
from ..core.messages import Text
from ..core.options import IMPORT_CHOICES, MESH_FILES, Choice, Option, Options, option, shared
from ..core.recognition import Match, NearMiss
from . import document
from .document import MOST, Header, Variant

AXES = Option(
    name="axes",
    default="UNITY",
    label="Axes",
    description="How Unity's axes (left-handed, Y up) are mapped to Blender's; the file does not state it. "
    "An export of imported objects uses the choice of their import",
    section="Objects",
    is_remembered=True,
    choices=(
        Choice("UNITY", "Unity", "What faces forward in Unity (+Z) faces Blender's front view (-Y)"),
        Choice("SWAP_YZ", "Swap Y and Z Only", "Rotated by 180° about the vertical axis, as in some other pipelines"),
    ),
)


class ReadOptions(Options):
    """The options for reading meshes."""

    axes: str = shared(AXES)


class WriteOptions(Options):
    """The options for writing meshes."""

    mesh_files: str = shared(MESH_FILES)
    large_meshes: str = option(
        "Too Large",
        "What to do with a mesh of more vertices or triangles than one file holds",
        default="REFUSE",
        section="File",
        choices=(
            Choice("REFUSE", "Refuse", "Write up to 65,535 vertices and triangles, with a warning above 64,000"),
            Choice(
                "SPLIT",
                "Split into Numbered Files",
                "A mesh of more than 64,000 vertices or triangles becomes several files: name_1, name_2 and so on",
            ),
        ),
    )
    use_stored_normals: bool = option(
        "Normals", "Write normals, 8 bits for each axis", default=True, section="Geometry"
    )
    use_stored_uvs: bool = option("UV Map", "Write the first UV map", default=True, section="Geometry")
    mesh_tangents: str = option(
        "Tangents",
        "Whether to write tangents for normal maps, computed by MikkTSpace from the first UV map",
        default="AUTO",
        section="Geometry",
        choices=(
            Choice("AUTO", "As in the File", "If the mesh was imported from a file with tangents"),
            Choice("ALWAYS", "Always", "For every mesh with a UV map"),
            Choice("NEVER", "Never", "Unity can compute them"),
        ),
    )
    use_import_choices: bool = shared(IMPORT_CHOICES)
    axes: str = shared(AXES)


MESH_SERIALIZER = FileFormat(
    name="mesh_serializer",
    label="MeshSerializer2",
    extensions=(".data", ".bin", ".bytes", ".3d", ".mesh"),
    capabilities=Capabilities(uv_layers=1, normals=True, splits_vertices=True),
    modules=modules_of(__package__),
    only_read=(".mesh",),
    ambiguous=(".data", ".bin", ".bytes", ".3d"),
    import_options=ReadOptions,
    export_options=WriteOptions,
)

FAMILY = Family("mesh_serializer", "Unity MeshSerializer2", (MESH_SERIALIZER,), "mesh_serializer.md", "Unity")


_MOST_WRAPS = 64
"""Largest number of overflows of a 16-bit count that is tried: meshes of four million vertices or triangles."""
_MOST_PER_VERTEX = 6
"""Largest ratio of triangles to vertices, or vertices to triangles, of a file that counts as a damaged mesh."""


def explain_near_miss(head: bytes, size: int) -> str:
    """Return a sentence about the file without a full stop, or an empty string."""
    header = Header.of(head)
    if header is None:
        return ""
    return _wrapped(head, size, header) or _bind_poses(head, size) or _cut_off(head, size, header)


def _wrapped(head: bytes, size: int, header: Header) -> str:
    """Recognise a mesh with more vertices or triangles than its 16-bit counts can hold (section 4)."""
    if not header.allows(15) or not document.sound_bounds(head, document.HEADER.size, 3):
        return ""
    for wraps in range(_MOST_WRAPS):
        large = Header(header.vertices + wraps * (MOST + 1), header.triangles, header.format)
        rest, left = divmod(size - large.size, document.TRIANGLE * (MOST + 1))
        if left or not 0 <= rest < _MOST_WRAPS or not (wraps or rest) or not large.vertices:
            continue
        triangles = large.triangles + rest * (MOST + 1)
        return Text(
            "This looks like a mesh of Unity's MeshSerializer2 with {:,} vertices and {:,} triangles, written by a "
            "program that ignored the limit of {:,} of each; its triangles are damaged beyond repair. Export "
            "the mesh again in parts",
            large.vertices,
            triangles,
            MOST,
        )
    return ""


def _bind_poses(head: bytes, size: int) -> str:
    """Recognise the PCF asset format, a variant with bones whose layout is known only in part (section 7)."""
    for start, poses in ((4, 0), (6, int.from_bytes(head[4:6], "little"))):
        vertices, triangles = (int.from_bytes(head[at : at + 2], "little") for at in (0, 2))
        weights = 24 * vertices if poses else 0
        for format_size in (0, 1):
            sizes = start + format_size + document.POSITION_BOUNDS + document.UV_BOUNDS + 64 * poses
            expected = sizes + 17 * vertices + weights + document.TRIANGLE * triangles
            at = start + format_size
            if vertices and triangles and expected == size and document.sound_bounds(head, at, 3):
                return (
                    "This looks like a mesh of the PCF asset format, a variant of MeshSerializer2 whose layout is not "
                    "known well enough to read it"
                )
    return ""


def _cut_off(head: bytes, size: int, header: Header) -> str:
    """Recognise a file that begins like the format but has a different size than its header implies."""
    if not (header.allows(15) and header.vertices and header.triangles and document.has_sound_bounds(head, header)):
        return ""
    few, many = sorted((header.vertices, header.triangles))
    if many > _MOST_PER_VERTEX * few or not header.size // 4 <= size <= 4 * header.size:
        return ""
    return Text(
        "This begins like a mesh of Unity's MeshSerializer2 with {:,} vertices and {:,} triangles, which need {:,} "
        "bytes, but it has {:,}: it is damaged or something else",
        header.vertices,
        header.triangles,
        header.size,
        size,
    )


def sniff(head: bytes, size: int) -> Match | NearMiss:
    """Return the evidence for this format, or a related one, or explain a damaged file."""
    variant = variant_of(head, size)
    if variant is None:
        text = explain_near_miss(head, size)
        return NearMiss(text) if text else Match.NONE
    return Match.PLAUSIBLE if variant in _WEAK else Match.LENGTH


def variant_of(head: bytes, size: int) -> Variant | None:
    """Return the variant of a file, or None.

    The length alone identifies ``Variant.CURRENT``. The other variants need more evidence and are tried after it.
    """
    return next((variant for variant, test in _TESTS if test(head, size)), None)


def _is_first_text(head: bytes, size: int) -> bool:
    decoded = document.decode_text(head[: len(head) // 2 * 2])
    return decoded is not None and not size % 2 and document.fits_first(decoded, size // 2)


_TESTS: tuple[tuple[Variant, Callable[[bytes, int], bool]], ...] = (
    (Variant.CURRENT, document.fits),
    (Variant.FIRST, document.fits_first),
    (Variant.FIRST_TEXT, _is_first_text),
    (Variant.CACHED, document.fits_cached),
    (Variant.SUBMESHES, document.fits_submeshes),
)

_WEAK = (Variant.FIRST_TEXT, Variant.SUBMESHES)
"""Variants that other formats may resemble by chance; such a format is preferred if it recognises the file."""
