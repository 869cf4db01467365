"""Rules for a UNIGINE node or world."""

from __future__ import annotations

from collections import Counter

from ...core.findings import Finding, warning
from ...core.messages import counted, listed
from .document import MESH_KINDS, SceneFile


def check(document: SceneFile) -> list[Finding]:
    """Return findings about the file itself; those about the files that it refers to come from :mod:`.linking`."""
    findings = [warning("", text) for text in document.warnings]
    repeated = [
        name for name, count in Counter(node.identifier for node in document.nodes).items() if name and count > 1
    ]
    if repeated:
        findings.append(warning("", f"{counted(len(repeated), 'id')} used by several nodes: {listed(repeated)}"))
    for node in document.nodes:
        has_mesh = node.geometry is not None or node.values.get("mesh_name") or node.values.get("reference")
        if node.kind in MESH_KINDS and not has_mesh:
            findings.append(warning(f"node '{node.name}'", "names no mesh, so nothing is shown"))
    return findings
