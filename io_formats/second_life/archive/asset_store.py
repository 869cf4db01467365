"""The assets of an archive that its objects name, read in one pass."""

from __future__ import annotations

import re
from collections.abc import Container

from . import container
from .content_store import ContentStore

MEMORY_LIMIT = 10**9
"""Bytes of assets that are held in memory; the others go to a temporary file."""
MESH, PICTURE, MATERIAL = "mesh.llmesh", "texture.jp2", "material.xml"
"""Kinds of assets: the ends of their names in an archive."""
_ASSET = re.compile(rf"(?:\./)?assets/([0-9a-f-]{{36}})_({MESH}|{PICTURE}|{MATERIAL})", re.IGNORECASE)


def asset_of(name: str) -> tuple[str, str] | None:
    """Return UUID and kind of the asset in a file of an archive, in lower case; None for another file."""
    found = _ASSET.fullmatch(name)
    return (found[1].lower(), found[2].lower()) if found else None


class AssetStore(ContentStore):
    """The assets that were asked for, by UUID in lower case; their keys are UUID and kind."""

    def mesh(self, uuid: str) -> bytes | None:
        """Return the content of ``assets/<uuid>_mesh.llmesh``, or None if the archive does not have it."""
        return self.get(uuid + MESH)

    def picture(self, uuid: str) -> bytes | None:
        """Return the content of ``assets/<uuid>_texture.jp2``, or None."""
        return self.get(uuid + PICTURE)

    def material(self, uuid: str) -> bytes | None:
        """Return the content of ``assets/<uuid>_material.xml``, or None."""
        return self.get(uuid + MATERIAL)


def read_assets(
    open_archive: container.Opener,
    wanted: Container[str],
    *,
    inflated_limit: int | None = None,
    memory_limit: int = MEMORY_LIMIT,
) -> AssetStore:
    """Read the meshes, pictures and older materials of an archive with these UUIDs (in lower case).

    Assets that are too large or links are left out, as if the archive did not have them.

    Raises
    ------
    FormatError
        The archive is cut off or damaged, or there is no space for the temporary file.
    """

    def limit_of(name: str) -> int:
        asset = asset_of(name)
        return container.LARGEST_ASSET if asset and asset[0] in wanted else 0

    store = AssetStore(memory_limit)
    try:
        for name, content in container.archive_members(open_archive, limit_of, inflated_limit=inflated_limit):
            asset = asset_of(name)
            if content is not None and asset:
                uuid, kind = asset
                store.add(uuid + kind, content)
    except BaseException:
        store.close()
        raise
    return store
