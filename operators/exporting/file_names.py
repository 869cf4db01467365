"""Names of the files that exports write."""

import re
from pathlib import Path
from typing import Any

from ...io_formats import api
from ...io_formats.core.format import Format
from ...io_formats.disk.file_names import file_name


def plain_name(collection: Any) -> str:
    """Return the collection's name, without the number that Blender added because the file had been imported before."""
    name: str = collection.name
    plain = re.sub(r"\.\d{3,}$", "", name)
    source = collection.meshferry.source_path
    return plain if source and plain == api.scene_name(Path(source)) else name


def suggested_file_name(name: str, target: Format, suffix: str = "", extension: str = "") -> str:
    """Return a collection's file name with suffix and extension and without forbidden characters.

    ``extension`` is one of the format's extensions, by default the first.
    """
    stem = file_name(name.strip(" .") or "Untitled")
    for known in target.extensions:
        stem = stem.removesuffix(known)
    return stem.removesuffix(suffix) + suffix + (extension or target.extensions[0])


def with_extension(path: str, target: Format, extension: str = "") -> str:
    """Return the path with the format's extension; dots before the extension are kept.

    ``extension`` is one of the format's extensions, by default the first.
    """
    lower = path.lower()
    for known in target.extensions:
        if lower.endswith(known) and Path(path).name.lower() != known:
            return path[: -len(known)] + (extension or target.extensions[0])
    return path + (extension or target.extensions[0])
