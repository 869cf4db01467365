"""Contents of an archive that are needed later: in memory, and beyond a limit in a temporary file."""

from __future__ import annotations

import tempfile
from types import TracebackType
from typing import BinaryIO, Self, cast

from ...core.errors import FormatError, refusal


class ContentStore:
    """Contents by key. Close the store, or use it as a context manager, to delete its temporary file.

    Parameters
    ----------
    limit:
        Number of bytes that are held in memory.
    """

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._contents: dict[str, bytes | tuple[int, int]] = {}
        """The bytes, or their offset and length in the file."""
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Forget all contents and delete the temporary file."""
        self._contents.clear()
        if self._file is not None:
            self._file.close()
            self._file = None

    def add(self, key: str, content: bytes) -> None:
        """Store a content; the first one of a key is kept.

        Raises
        ------
        FormatError
            There is no space for the temporary file.
        """
        if key in self._contents:
            return
        if len(content) <= self._left:
            self._left -= len(content)
            self._contents[key] = content
            return
        try:
            if self._file is None:
                self._file = cast("BinaryIO", tempfile.TemporaryFile(prefix="meshferry-"))  # noqa: SIM115 (see close)
            start = self._file.seek(0, 2)
            self._file.write(content)
        except OSError as error:
            raise FormatError("The temporary file for the assets cannot be written: {}", refusal(error)) from None
        self._contents[key] = start, len(content)

    def get(self, key: str) -> bytes | None:
        """Return a content, or None if there is none of this key.

        Raises
        ------
        FormatError
            The temporary file cannot be read.
        """
        found = self._contents.get(key)
        if not isinstance(found, tuple) or self._file is None:
            return found if isinstance(found, bytes) else None
        start, size = found
        try:
            self._file.seek(start)
            return self._file.read(size)
        except OSError as error:
            raise FormatError("The temporary file for the assets cannot be read: {}", refusal(error)) from None
