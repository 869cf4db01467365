"""Check an upload request against the rules of viewer and grid (formats page, sections 9 and 12)."""

from __future__ import annotations

from ...core.messages import Message, Text, error, warning
from ..asset import rules
from ..asset.mapping import asset_findings
from .document import UploadRequest

check_scene = rules.check_scene

MOST_INSTANCES = 512
"""Maximum number of objects of a linkset, in OpenSim."""
_MOST_SCALE = 256.0
_LEAST_SCALE = 0.001


def check(document: UploadRequest) -> list[Message]:
    """Apply the rules that the grid checks before it accepts a request."""
    findings: list[Message] = []
    if not document.instances:
        findings.append(error("no-object", "there is no object to upload"))
    if len(document.instances) > MOST_INSTANCES:
        template = "{:,} objects; a linkset has {} at most: join some of them"
        findings.append(error("too-many-objects", template, len(document.instances), MOST_INSTANCES))
    tiny = 0
    for instance in document.instances:
        owner = Text("Object '{}'", instance.name)
        findings += asset_findings(document.meshes[instance.mesh], owner)
        if max(instance.scale) > _MOST_SCALE:
            findings.append(error("object-too-large", "it is longer than {:g} m", _MOST_SCALE, item=owner))
        if min(instance.scale) < _LEAST_SCALE:
            tiny += 1
            template = "it is thinner than {:g} mm; OpenSim leaves it out"
            findings.append(warning("object-too-thin", template, _LEAST_SCALE * 1000, item=owner))
    if tiny * 2 > len(document.instances):
        template = "more than half of the objects are thinner than 1 mm; OpenSim rejects all of them"
        findings.append(error("most-objects-too-thin", template))
    return list(dict.fromkeys(findings))
