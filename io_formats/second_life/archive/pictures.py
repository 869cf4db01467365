"""The pictures of an archive: which of them Blender may decode.

Pictures are JPEG 2000 of unknown origin, and some make Blender crash, so that all are examined first.
"""

from __future__ import annotations

from dataclasses import replace

from ...core.errors import FormatError
from ...core.messages import Report, Text, counted, listed
from ...core.shading import Texture
from ...encodings import jpeg2000
from .asset_store import AssetStore
from .document import NEVER_STORED

_WITHOUT_PICTURE = {*NEVER_STORED, ""}
_WITH_ALPHA = {2, 4, 5}
"""Numbers of components of pictures that have an alpha channel. The fifth component of avatar textures is ignored."""
_FIRST_WITH_TWO = (5, 2)
"""Earlier versions of Blender crash on some pictures of two components."""
MOST_PIXELS = 2_000_000_000
"""Largest number of pixels of all pictures together, since Blender decodes them all for the first preview."""


class Pictures:
    """The pictures of one import, which are read once each.

    Pictures that are missing or refused are left out, and :meth:`report` names them.
    """

    def __init__(self, assets: AssetStore, path: str) -> None:
        self._assets = assets
        self._path = path
        self._known: dict[str, jpeg2000.Jpeg2000Info | None] = {}
        self._missing: list[str] = []
        self._refused: dict[Text, list[str]] = {}
        self._pixels = 0

    def texture(self, uuid: str) -> Texture | None:
        """Return a picture as a texture; None for the blank ones, and for one that is left out."""
        found = self.examined(uuid)
        if found is None:
            return None

        def read() -> bytes:
            return self.content(uuid)

        return Texture(
            f"{uuid}.j2c",
            width=found.width,
            height=found.height,
            has_alpha=found.components in _WITH_ALPHA,
            first_version=_FIRST_WITH_TWO if found.components == 2 else (0, 0),
            read=read,
            source=f"{self._path}/{uuid}",
        )

    def content(self, uuid: str) -> bytes:
        """Return the codestream of a picture.

        Raises
        ------
        FormatError
            The picture is missing or refused.
        """
        content = self._assets.picture(uuid) if self.examined(uuid) is not None else None
        stream = jpeg2000.codestream(content) if content is not None else None
        if stream is None:
            raise FormatError("Its picture {} cannot be used", uuid)
        return stream

    def examined(self, uuid: str) -> jpeg2000.Jpeg2000Info | None:
        """Return the size and the components of a picture; None where :meth:`texture` returns None."""
        if uuid not in self._known:
            self._known[uuid] = None if uuid in _WITHOUT_PICTURE else self._examined(uuid)
        return self._known[uuid]

    def _examined(self, uuid: str) -> jpeg2000.Jpeg2000Info | None:
        content = self._assets.picture(uuid)
        if content is None:
            self._missing.append(uuid)
            return None
        found = jpeg2000.examine(content, two_components=True)
        if not isinstance(found, Text) and self._pixels + found.width * found.height > MOST_PIXELS:
            found = Text("all pictures together have more than {:,} pixels", MOST_PIXELS)
        if isinstance(found, Text):
            self._refused.setdefault(found, []).append(uuid)
            return None
        self._pixels += found.width * found.height
        return replace(found, stream=b"")

    def report(self, report: Report) -> None:
        """Report the pictures that are left out."""
        if self._missing:
            number = counted(len(self._missing), "picture is", "pictures are")
            template = "{} not in the archive; the faces have their colour alone: {}"
            report.loss("missing-pictures", template, number, listed(self._missing))
        for reason, names in self._refused.items():
            number = counted(len(names), "picture")
            template = "{} left out; the faces have their colour alone: {}: {}"
            report.loss("pictures-left-out", template, number, reason, listed(names))
