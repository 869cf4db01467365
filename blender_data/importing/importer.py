"""Scene -> Blender: an import creates everything, or nothing if it fails."""

import bpy

from .. import import_marks, names
from ..armature_modifiers import armature_of
from ..operator_calls import require_own_scene
from ..properties import store_fields
from ..rigging import shown_bindings
from ..steps import Steps, finish
from . import meshes, nodes, objects
from .import_context import ImportContext, ImportResult
from .import_options import ImportOptions, ImportRequest
from .placements.placement_import import PlacementImporter

__all__ = ["ImportOptions", "ImportRequest", "ImportResult", "import_scene", "import_steps"]


def import_scene(request: ImportRequest) -> ImportResult:
    """Create a collection with the objects, materials and actions of a scene, and link it to Blender's scene.

    Raises
    ------
    MeshferryError
        The material library or a mesh cache cannot be opened, or Blender's scene is linked from another file. After any
        exception, no new data block remains.
    """
    return finish(import_steps(request))


def import_steps(request: ImportRequest) -> Steps[ImportResult]:
    """Do the same as :func:`import_scene` in steps; the last of them adds the objects to the user's scene."""
    require_own_scene(request.context)
    job = ImportContext(request)
    try:
        return (yield from _build(job))
    except BaseException:
        job.undo()
        raise


def _build(job: ImportContext) -> Steps[ImportResult]:
    """Build the objects of a scene or a placement, and link them to the user's scene as the last step."""
    if job.scene.placement is not None:
        return (yield from PlacementImporter(job, job.scene.placement).build())
    actions = yield from nodes.build_scene(job)
    _show_bindings(job)
    job.materials.report_textures()
    rendered = (made for made in job.objects if made.data and made.meshferry.role == "RENDER")
    triangles = sum(meshes.triangle_count(made.data) for made in rendered)
    armatures = list(dict.fromkeys(found.armature for found in job.bones if found is not None))
    objs = [*job.armatures, *job.objects]
    return job.finished(ImportResult(_link(job), objs, triangles, armatures, actions))


def _show_bindings(job: ImportContext) -> None:
    """Show new meshes on earlier armatures as the file binds them; prepare it for those on new ones."""
    bound: dict[bpy.types.Object, list[bpy.types.Object]] = {}
    for node, made in zip(job.scene.nodes, job.objects, strict=True):
        armature = armature_of(made) if node.skin is not None and made.type == "MESH" else None
        if armature is None or node.skin is None:
            continue
        if armature not in job.armatures or node.skin.differs_from_rest:
            bound.setdefault(armature, []).append(made)
        else:
            made.meshferry.skin.is_checked = True
    for armature, objs in bound.items():
        shown_bindings.update(job.request.context, armature, objs, job.keep)


def _link(job: ImportContext) -> bpy.types.Collection:
    """Link the new objects to a collection in the scene. This comes last, since Blender evaluates linked objects.

    If only animations for an existing armature were imported, there is no new collection.
    """
    context = job.request.context
    if job.scene.skeletons and not job.objects and not job.armatures:
        homes = job.request.armature.users_collection if job.request.armature is not None else ()
        return next(iter(homes), context.scene.collection)
    collection: bpy.types.Collection = job.keep(bpy.data.collections.new(names.fit(job.scene.name)))
    collection.meshferry.from_file = True
    store_fields(collection.meshferry, job.scene)
    import_marks.write_origin(collection, job.request)
    import_marks.mark_objects(collection, [*job.armatures, *job.objects])
    hidden = objects.link_levels(collection, job.armatures, job.objects, job.keep, job.scene.level_names)
    context.scene.collection.children.link(collection)
    context.view_layer.update()
    objects.hide_levels(context.view_layer, hidden)
    return collection
