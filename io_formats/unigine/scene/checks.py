"""Rules for a UNIGINE node or world."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ...core.messages import Kind, Message, Report, Text, counted, listed
from .document import MESH_KINDS, SceneFile


def check(document: SceneFile) -> list[Message]:
    """Return findings about the file itself. Findings about files that it refers to come from :mod:`.linking`."""
    report = Report([replace(message, kind=Kind.WARNING) for message in document.warnings])
    repeated = [
        name for name, count in Counter(node.identifier for node in document.nodes).items() if name and count > 1
    ]
    if repeated:
        report.warning(
            "repeated-node-id", "{} used by several nodes: {}", counted(len(repeated), "id"), listed(repeated)
        )
    for node in document.nodes:
        has_mesh = node.geometry is not None or node.values.get("mesh_name") or node.values.get("reference")
        if node.kind in MESH_KINDS and not has_mesh:
            report.warning("names-no-mesh", "names no mesh, so nothing is shown", item=Text("node '{}'", node.name))
    for finding in document.new_set.findings if document.new_set is not None else ():
        report.add(finding)
    return report.messages
