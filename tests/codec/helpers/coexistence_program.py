"""Read files in an interpreter that shares protobuf with another add-on; run by test_protobuf_coexistence.py.

The official exporter puts a folder with protobuf 4.21.7 on ``sys.path`` and registers its own messages, package
``protoblog``, in the default descriptor pool, as generated modules do. This does the same, before or after our turn.

Arguments: a JSON object with ``site`` (folder with a protobuf, or empty), ``theirs`` ("before", "after" or "never") and
``files``. Prints a JSON object.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any


def register_theirs() -> Any:
    """Do what a generated ``timbermesh_pb2`` of the package ``protoblog`` does when it is imported."""
    import timbermesh_oracle
    from google.protobuf import descriptor_pool
    from google.protobuf.internal import builder

    serialised = timbermesh_oracle.file_descriptor("protoblog").SerializeToString()
    names: dict[str, Any] = {}
    descriptor = descriptor_pool.Default().AddSerializedFile(serialised)
    builder.BuildMessageAndEnumDescriptors(descriptor, names)
    builder.BuildTopDescriptorsAndMessages(descriptor, "timbermesh_pb2", names)
    return names["Model"]


def register_theirs_first() -> Any:
    """Register before the extension, and so the compiled part of its protobuf, is on the path."""
    sys.modules["google._upb"] = None  # type: ignore[assignment]
    try:
        return register_theirs()
    finally:
        del sys.modules["google._upb"]


def main() -> None:
    given = json.loads(sys.argv[1])
    theirs = None
    if given["site"]:
        sys.path.insert(0, given["site"])
    if given["theirs"] == "before":
        theirs = register_theirs_first() if given["site"] else register_theirs()
    from load_package import load_package

    load_package()
    from meshferry.io_formats.core.errors import FormatError
    from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

    documents = {name: TIMBERMESH.read(Path(name).read_bytes()) for name in given["files"]}
    import google.protobuf
    import oracle  # only now: it imports protobuf, and that is for us to find
    from google.protobuf.internal import api_implementation

    digests = {}
    contents = {}
    for name, document in documents.items():
        written = TIMBERMESH.write(document)
        assert TIMBERMESH.read(written) == document
        assert TIMBERMESH.same_content(Path(name).read_bytes(), written)
        contents[name] = oracle.inflate(written)
        scene = TIMBERMESH.to_scene(document, "x")
        facts = [repr(TIMBERMESH.facts(document)), str(scene.triangle_count), str(len(TIMBERMESH.check(document)))]
        digests[name] = [hashlib.sha256(contents[name]).hexdigest(), *facts]
    refused = 0
    for broken in (b"\x1a\x05", oracle.chunk(3, b"\x0b"), oracle.chunk(3, oracle.chunk(2, b"\xff"))):
        try:
            TIMBERMESH.read(broken)
        except FormatError:
            refused += 1
    if given["theirs"] == "after":
        theirs = register_theirs()
    if theirs is not None:
        for content in contents.values():
            model = theirs()
            model.ParseFromString(content)
            assert model.SerializeToString() == content
            assert model.DESCRIPTOR.full_name == "protoblog.Model"
    print(
        json.dumps(
            {
                "version": google.protobuf.__version__,
                "implementation": api_implementation.Type(),
                "digests": digests,
                "refused": refused,
            }
        )
    )


if __name__ == "__main__":
    main()
