"""Check an animation against the rules of the viewer's uploader (animation format page, sections 3 to 6 and 10)."""

from __future__ import annotations

from dataclasses import replace

from ...core.findings import OWN_FORMAT, Finding, error, warning
from ...core.messages import counted, listed
from ..avatar import skeleton_table
from . import codes, constraints, curves, looping, writer
from .document import LONGEST_CHAIN, MOST_CONSTRAINTS, SecondLifeAnimation, text
from .document_builder import MOST_BYTES
from .export_findings import bones, largest_joints, moment
from .names import is_emote
from .options import LONGEST

_REFUSED = ("mRoot", "mScreen")
_HIGHEST_PRIORITY = 6
_LAST_HAND = 13


def check(document: SecondLifeAnimation) -> list[Finding]:
    """Return errors for what the viewer refuses, and warnings for what it changes or ignores.

    Errors of a file do not prevent writing it in its own format again.
    """
    return [replace(finding, allowed_by=OWN_FORMAT) for finding in _findings(document)]


def _findings(document: SecondLifeAnimation) -> list[Finding]:
    item = "The animation"
    findings: list[Finding] = []
    names = [text(joint.name) for joint in document.joints]
    refused = [name for name in names if name in _REFUSED]
    if refused:
        findings.append(error(item, f"viewers refuse animations of these joints: {listed(refused)}", bones(refused)))
    unknown = [name for name in names if name not in _REFUSED and not skeleton_table.is_animatable(name)]
    if unknown:
        said = f"the avatar has no joint {listed(unknown)}, so the upload is refused"
        findings.append(error(item, said, bones(unknown)))
    if not any(len(joint.rotation) + len(joint.position) for joint in document.joints):
        findings.append(error(item, "it has no keys", bones(names) if names else None))
    if not 0 <= document.duration <= LONGEST:
        findings.append(
            error(item, f"it is {document.duration:.1f} s long; viewers take 0 to {LONGEST:.0f} s", moment(LONGEST))
        )
    size = len(writer.write(document))
    if size > MOST_BYTES:
        said = f"it has {size:,} bytes; an upload may have {MOST_BYTES:,}"
        findings.append(error(item, said, largest_joints(document.joints)))
    findings += _priorities(document, item)
    if document.hand_pose > _LAST_HAND:
        findings.append(error(item, f"hand pose {document.hand_pose} does not exist; the highest is {_LAST_HAND}"))
    findings += _constraints(document, item)
    if not 0 <= document.loop_in <= document.loop_out <= document.duration and document.loop:
        said = f"its loop from {document.loop_in:.2f} to {document.loop_out:.2f} s is not within its length"
        time = moment(min(max(document.loop_out, 0.0), document.duration))
        findings.append(warning(item, f"{said} of {document.duration:.2f} s", time))
    if not document.loop and document.ease_in + document.ease_out > document.duration:
        said = "ease in and ease out together are longer than the animation"
        findings.append(warning(item, said, moment(max(document.duration - document.ease_out, 0.0))))
    emote = text(document.emote)
    if not is_emote(emote):
        findings.append(warning(item, f"viewers may not know the expression '{emote}'"))
    return findings + _positions(document, item) + _loop(document, item)


def _constraints(document: SecondLifeAnimation, item: str) -> list[Finding]:
    findings = []
    if len(document.constraints) > MOST_CONSTRAINTS:
        text_of = f"it has {len(document.constraints)} constraints; viewers ignore all if there are over "
        findings.append(warning(item, f"{text_of}{MOST_CONSTRAINTS}"))
    elif unusable := constraints.unusable(document):
        number = counted(len(unusable), "constraint")
        volumes = dict.fromkeys(constraints.source_name(document.constraints[place]) for place in unusable)
        said = f"viewers refuse {number}, for which a volume or an animated joint is missing: {listed(list(volumes))}"
        findings.append(error(item, said))
    if any(chain > LONGEST_CHAIN for chain in document.constraints["chain_length"].tolist()):
        findings.append(error(item, f"a constraint bends more than {LONGEST_CHAIN} joints, which can crash viewers"))
    return findings


def _loop(document: SecondLifeAnimation, item: str) -> list[Finding]:
    """Warn about a loop with a jump."""
    opened = [jump for jump in looping.jumps(document) if not jump.is_closed]
    if not opened:
        return []
    degrees, millimetres = max(jump.degrees for jump in opened), max(jump.millimetres for jump in opened)
    said = f"the loop jumps by up to {degrees:.1f}° and {millimetres:.0f} mm from its end to its start"
    names = [jump.joint for jump in opened]
    return [warning(item, f"{said}: {listed(names)}", bones(names))]


def _priorities(document: SecondLifeAnimation, item: str) -> list[Finding]:
    high = [text(joint.name) for joint in document.joints if not -1 <= joint.priority <= _HIGHEST_PRIORITY]
    findings = []
    if not 0 <= document.base_priority <= _HIGHEST_PRIORITY:
        findings.append(error(item, f"its priority is {document.base_priority}, but must be 0 to {_HIGHEST_PRIORITY}"))
    if high:
        findings.append(error(item, f"the priority must be -1 to {_HIGHEST_PRIORITY}: {listed(high)}", bones(high)))
    return findings


def _positions(document: SecondLifeAnimation, item: str) -> list[Finding]:
    moved, far, times = [], [], []
    for joint in document.joints:
        if not len(joint.position):
            continue
        name = text(joint.name)
        if skeleton_table.canonical(name) != skeleton_table.ROOT:
            moved.append(name)
        if abs(curves.position_keys(document, joint).values).max() > codes.FARTHEST * 0.9999:
            far.append(name)
            places = curves.position_keys(document, joint)
            beyond = abs(places.values).max(axis=1) > codes.FARTHEST * 0.9999
            times.append(round(float(places.times[beyond][0]) * 1000))
    findings = []
    if moved:
        said = "positions of joints deform avatars with joint positions of their own, even after it has stopped"
        findings.append(warning(item, f"{said}: {listed(moved)}", bones(moved)))
    if far:
        said = f"positions end at {codes.FARTHEST:.0f} m, from {min(times) / 1000:.2f} s on: {listed(far)}"
        findings.append(warning(item, said, moment(min(times) / 1000)))
    return findings
