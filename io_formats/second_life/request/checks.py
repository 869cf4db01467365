"""Check an upload request against the rules of viewer and grid (formats page, sections 9 and 12)."""

from __future__ import annotations

from ...core.findings import Finding, error, warning
from ..mesh.checks import asset_findings
from ..rules.rules import check_scene
from .document import UploadRequest

__all__ = ["check", "check_scene"]

MOST_INSTANCES = 512
"""Maximum number of objects of a linkset, in OpenSim."""
_MOST_SCALE = 256.0
_LEAST_SCALE = 0.001


def check(document: UploadRequest) -> list[Finding]:
    """Apply the rules that the grid checks before it accepts a request."""
    findings: list[Finding] = []
    if not document.instances:
        findings.append(error("", "there is no object to upload"))
    if len(document.instances) > MOST_INSTANCES:
        text = f"{len(document.instances):,} objects; a linkset has {MOST_INSTANCES} at most: join some of them"
        findings.append(error("", text))
    tiny = 0
    for instance in document.instances:
        item = f"Object '{instance.name}'"
        findings += asset_findings(document.meshes[instance.mesh], item)
        if max(instance.scale) > _MOST_SCALE:
            findings.append(error(item, f"it is longer than {_MOST_SCALE:g} m"))
        if min(instance.scale) < _LEAST_SCALE:
            tiny += 1
            findings.append(warning(item, f"it is thinner than {_LEAST_SCALE * 1000:g} mm; OpenSim leaves it out"))
    if tiny * 2 > len(document.instances):
        findings.append(error("", "more than half of the objects are thinner than 1 mm; OpenSim rejects all of them"))
    return list(dict.fromkeys(findings))
