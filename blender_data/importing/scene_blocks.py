"""Create the armatures, objects and animations of a scene in the necessary order."""

from __future__ import annotations

from ..rigging import helper_bones
from ..steps import Step, Steps, scaled
from . import objects
from .clips.clips import ClipBuilder
from .import_context import ImportContext
from .nodes import NodeBuilder
from .rigs.skeletons import build_skeletons, set_sliders, switch_on_weighted


def build_scene(job: ImportContext) -> Steps[int]:
    """Create the content of an import without linking it to a collection; return the number of actions."""
    nodes = job.scene.nodes
    if job.scene.skeletons:
        yield Step("Building armatures", 0.0)
    job.materials.link_from_library({name for node in nodes if node.mesh for name in node.mesh.materials if name})
    build_skeletons(job)
    builder = NodeBuilder(job)
    for index, node in enumerate(nodes):
        yield Step("Building objects", 0.7 * index / len(nodes))
        job.objects.append(builder.build(index, node))
    switch_on_weighted(job)
    helper_bones.show_used(job.scene, job.bones)
    helper_bones.hide(job.scene, job.bones, job.armatures)
    _relate_objects(job)
    actions = yield from scaled(ClipBuilder(job).build(), 0.7, 1.0)
    set_sliders(job)
    return actions


def _relate_objects(job: ImportContext) -> None:
    """Set the parents of objects, and store the finest object of each level of detail and physics shape."""
    for made, node in zip(job.objects, job.scene.nodes, strict=True):
        if node.parent >= 0:
            made.parent = job.objects[node.parent]
        objects.set_role(made, node, job.objects)
    if job.is_placed:
        objects.point_to_parts(job.scene.nodes, job.objects)
