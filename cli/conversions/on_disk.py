"""Content from an archive as a temporary file, for readers that need a path."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def on_disk(path: Path, content: bytes | None) -> Iterator[Path]:
    """Yield a file's path, or that of a temporary file with ``content`` if this is given."""
    if content is None:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="meshferry-") as folder:
        copy = Path(folder, path.name)
        copy.write_bytes(content)
        yield copy
