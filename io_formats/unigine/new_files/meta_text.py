"""Text of the ``.meta`` file of a new asset (docs/formats/unigine_writing.md)."""

from __future__ import annotations

from pathlib import PurePosixPath

from ..values import escaped
from .assets import AssetKind, NewAsset


def meta_text(asset: NewAsset, guid: str, version: str) -> bytes:
    """Encode the ``.meta`` file of an asset that is its own runtime.

    It contains no hash, which the editor adds.
    """
    path = PurePosixPath(asset.name)
    name = path.stem if asset.kind is AssetKind.MATERIAL else path.name
    lines = [
        b'<?xml version="1.0" encoding="utf-8"?>',
        b'<asset version="%s">' % escaped(version),
        b"\t<guid>%s</guid>" % guid.encode(),
        b"\t<type>%s</type>" % asset.kind.value.encode(),
        b"\t<runtimes>",
        b'\t\t<runtime id="%s" name="%s" link="0"/>' % (guid.encode(), escaped(name)),
        b"\t</runtimes>",
    ]
    if asset.parameters:
        template = b'\t\t<parameter type="%s" name="%s">%s</parameter>'
        values = [template % (escaped(one.type), escaped(one.name), escaped(one.value)) for one in asset.parameters]
        lines += [b"\t<parameters>", *values, b"\t</parameters>"]
    return b"\n".join([*lines, b"</asset>", b""])
