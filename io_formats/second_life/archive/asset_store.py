"""The assets of an archive that its objects name, read in one pass."""

from __future__ import annotations

import re
from collections.abc import Container

from . import container
from .content_store import ContentStore

MEMORY_LIMIT = 10**9
"""Bytes of assets that are held in memory; the others go to a temporary file."""
_ASSET = re.compile(r"(?:\./)?assets/([0-9a-f-]{36})_(mesh\.llmesh|texture\.jp2|material\.xml)", re.IGNORECASE)


class AssetStore:
    """The assets that were asked for, by UUID in lower case.

    Close the store, or use it as a context manager, to delete its temporary file.
    """

    def __init__(self, memory_limit: int = MEMORY_LIMIT) -> None:
        self._contents = ContentStore(memory_limit)
        self.close = self._contents.close

    def __enter__(self) -> AssetStore:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def add(self, uuid: str, kind: str, content: bytes) -> None:
        """Store an asset; ``kind`` is the end of its name in the archive."""
        self._contents.add(uuid + kind, content)

    def mesh(self, uuid: str) -> bytes | None:
        """Return the content of ``assets/<uuid>_mesh.llmesh``, or None if the archive does not have it."""
        return self._contents.get(uuid + "mesh.llmesh")

    def picture(self, uuid: str) -> bytes | None:
        """Return the content of ``assets/<uuid>_texture.jp2``, or None."""
        return self._contents.get(uuid + "texture.jp2")

    def material(self, uuid: str) -> bytes | None:
        """Return the content of ``assets/<uuid>_material.xml``, or None."""
        return self._contents.get(uuid + "material.xml")


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
        found = _ASSET.fullmatch(name)
        return container.LARGEST_ASSET if found and found[1].lower() in wanted else 0

    store = AssetStore(memory_limit)
    try:
        for name, content in container.members(open_archive, limit_of, inflated_limit=inflated_limit):
            found = _ASSET.fullmatch(name)
            if content is not None and found:
                store.add(found[1].lower(), found[2].lower(), content)
    except BaseException:
        store.close()
        raise
    return store
