"""Scene -> upload set (formats page, sections 10 and 10.1). Upload sets are only written."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from ...core.errors import ExportError
from ...core.messages import Report, Text, counted, joined, listed, of_kind
from ...core.scene import FloatArray, IntArray, Layer, Mesh, Node, Scene, Skeleton
from ...geometry.normals import face_normals, unit
from ...geometry.transforms import Matrix
from ...geometry.triangles import pool_rows
from ...passes.join_meshes import join
from ..asset import binding
from ..asset.binding import Rig
from ..avatar import joints
from ..avatar.joint_positions import ADVISED, MOVED, millimetres
from ..models import costs
from ..models.faces import MOST_FACES, FaceArrays, faces_of
from ..models.models import Model, first_equal, models_of
from ..models.unit_cube import exact_matrix_of, settled
from ..options import LEVEL_LABELS
from . import document
from .format import WriteOptions
from .levels import Levels, box_of_triangles, with_all_faces


def geometry_of(name: str, faces: Sequence[FaceArrays], symbols: Sequence[str]) -> tuple[document.Geometry, IntArray]:
    """Convert faces with triangles to a geometry; also return the index of each vertex's position in it, (V,)."""
    used = pool_rows(np.concatenate([face.points for face in faces]))
    positions = np.empty((used.count, 3), np.float32)
    positions[used.index] = np.concatenate([face.positions for face in faces])
    has_uvs = faces[0].uvs is not None
    corners: dict[str, list[IntArray]] = {}
    start = 0
    for face, symbol in zip(faces, symbols, strict=True):
        vertices = face.triangles.reshape(-1) + np.int32(start)
        columns = [used.index[vertices], vertices, *([vertices] if has_uvs else [])]
        corners.setdefault(symbol, []).append(np.stack(columns, axis=1))
        start += len(face.points)
    triangles = [document.Triangles(symbol, np.concatenate(parts)) for symbol, parts in corners.items()]
    uvs = np.concatenate([face.uvs for face in faces if face.uvs is not None]) if has_uvs else None
    return document.Geometry(
        name, positions, np.concatenate([face.normals for face in faces]), uvs, triangles
    ), used.index


def skin_of(rig: Rig, faces: Sequence[FaceArrays], position: IntArray, tree: int) -> document.Skin:
    """Return the binding of a geometry; positions without weights follow the first joint, like in the viewer.

    Parameters
    ----------
    position:
        Second result of :func:`geometry_of` for the faces.
    tree:
        Index of the joint tree of the rig.
    """
    count = int(position.max()) + 1
    indices, weights = np.zeros((count, 4), np.int32), np.zeros((count, 4), np.float32)
    start = 0
    for face in faces:
        of_face = position[start : start + len(face.points)]
        if face.joint_indices is not None and face.joint_weights is not None:
            indices[of_face], weights[of_face] = face.joint_indices, face.joint_weights
        start += len(face.points)
    indices = np.where(weights > 0, rig.index[indices], 0).astype(np.int32)
    weights[~weights.any(axis=1), 0] = 1.0  # the checks warn about it
    return document.Skin(
        [document.joint_word(name) for name in rig.joint_names], rig.inverse_bind, indices, weights, tree
    )


def tree_of(name: str, rigs: Iterable[Rig]) -> document.JointTree:
    """Return the joints of bindings to one armature and their ancestors up to the avatar's root, parents first.

    Bones are translations relative to their parents: those of the binding if it moves joints, otherwise those of the
    table. Collision volumes and attachment points have the table's rotation and scale.
    """
    table = joints.table()
    positions: dict[str, Matrix] = {}
    spelled: dict[str, str] = {}
    wanted: set[str] = set()
    unknown: dict[str, Matrix] = {}
    for rig in rigs:
        for number, joint in enumerate(rig.joint_names):
            known = joints.canonical(joint)
            position = None if rig.joint_positions is None else rig.joint_positions[number]
            if known is None:
                head = rig.rest[number, :3, 3] - joints.rest_matrices()[joints.ROOT][:3, 3]
                unknown[joint] = head if position is None else position
                wanted.add(joints.ROOT)
                continue
            wanted.update(joints.ancestors(known))
            spelled.setdefault(known, joint)
            if position is not None:
                positions[known] = position
    order = [joint for joint in table if joint in wanted]
    number_of = {joint: number for number, joint in enumerate(order)}
    nodes: list[document.JointNode] = []
    for joint in order:
        local = table[joint].local.copy()
        if joint in positions:
            local[:3, 3] = positions[joint]
        parent = number_of.get(table[joint].parent, -1)
        nodes.append(document.JointNode(spelled.get(joint, joint.replace(" ", "_")), parent, local))
    for joint, head in unknown.items():
        local = np.identity(4)
        local[:3, 3] = head
        nodes.append(document.JointNode(document.joint_word(joint), number_of[joints.ROOT], local))
    return document.JointTree(name, nodes)


def _require_equal_positions(trees: Sequence[document.JointTree]) -> None:
    """Raise ExportError if joints of two armatures have other positions.

    The viewer keeps one position for each name of a joint: the last of the file, for all its meshes.
    """
    first: dict[str, tuple[document.JointTree, Matrix]] = {}
    for tree in trees:
        known = {joint.name: first.setdefault(joint.name, (tree, joint.local)) for joint in tree.joints}
        shifts = {joint.name: (known[joint.name][1] - joint.local)[:3, 3] for joint in tree.joints}
        apart = [name for name, shift in shifts.items() if np.abs(shift).max() > MOVED]
        if apart:
            template = (
                "'{}' and '{}' have other positions of {}, but viewers keep one position of each joint for all meshes "
                "of an upload; export the meshes of each armature to files of their own"
            )
            names = listed(of_kind("bone", apart), _MOST_NAMED)
            raise ExportError(template, known[apart[0]][0].name, tree.name, names)


def box_of(least: FloatArray, most: FloatArray) -> Mesh:
    """Return a box with outward triangles, or a two-sided sheet if the box is flat; arguments are float32 (3,)."""
    extent = most - least
    flat = extent <= 1e-5 * max(float(extent.max()), 1e-30)
    unit_cube = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], np.float32)
    points = (least + unit_cube * extent).astype(np.float32)
    # Point indices of the six sides of the box, counter-clockwise from outside: -x, +x, -y, +y, -z, +z.
    sides = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    kept = [side for number, side in enumerate(sides) if not np.delete(flat, number // 2).any()]
    triangles = [corner for a, b, c, d in kept for corner in (a, b, c, a, c, d)]
    corner_point = np.array(triangles, np.int32)
    normal = Layer("", unit(np.repeat(face_normals(points, corner_point), 3, axis=0)), per_corner=True)
    return Mesh(points, corner_point, np.zeros(len(corner_point) // 3, np.int32), normal=normal)


SKIN_WEIGHT = "Include skin weight"
JOINT_POSITION = "Include joint positions"
LOCKED_SCALE = "Lock scale if joint position defined"
"""Label of a checkbox in the viewer's upload window."""

_MOST_NAMED = 5
"""Largest number of joints that a message names."""
_WORTH_SAYING = 1e-3
"""Share of the highest level's box by which vertices may be moved before a note is added."""


def files_of(scene: Scene, options: WriteOptions) -> list[Scene]:
    """Return the whole scene: all its models are one upload, and the first node is the root of the linkset."""
    return [scene] if models_of(scene) else []


def from_scene(scene: Scene, options: WriteOptions) -> document.UploadSet:
    """Map a scene to an upload set.

    Every level holds every model, since the viewer requires that: a missing level repeats the next finer one. The
    physics file holds only models with a physics mesh or hulls, because the viewer gives the others their convex hull;
    without any such model there is no physics file. ``scene.warnings`` reports what is left out or repaired.

    Raises
    ------
    ExportError
        Data that the files cannot hold; the message names the object and says what to do.
    """
    return _SetBuilder(scene, options).build()


class _SetBuilder:
    """Map a scene to an upload set."""

    def __init__(self, scene: Scene, options: WriteOptions) -> None:
        self.scene = scene
        self.options = options
        self.materials = document.Materials(scene, is_copied=options.use_textures)
        self.taken: set[str] = set()
        self.rigs: dict[int, list[Rig]] = {}
        """Bindings by index of the skeleton, in the order of the joint trees in each file."""

    def build(self) -> document.UploadSet:
        """Return the set, without files that have no instance."""
        scene = self.scene
        files = [document.ColladaFile(suffix) for suffix in document.SUFFIXES]
        built: list[list[document.Instance | None]] = []
        models = models_of(scene)
        for number, (model, first) in enumerate(zip(models, first_equal(models), strict=True)):
            built.append(_placed(built[first], model) if first < number else self._instances(model))
            for file, instance in zip(files, built[number], strict=True):
                if instance is not None:
                    file.instances.append(instance)
        trees = [tree_of(document.printable(scene.skeletons[number].name), rigs) for number, rigs in self.rigs.items()]
        _require_equal_positions(trees)
        for file in files[:-1]:
            file.trees = trees
        files = [file for file in files if file.instances]
        all_rigs = [rig for rigs in self.rigs.values() for rig in rigs]
        choice = self.options.joint_positions
        boxes = dict.fromkeys(box for rig in all_rigs for box in (SKIN_WEIGHT, *_position_boxes(rig, choice)))
        return document.UploadSet(files, self.materials.materials, self.materials.images, list(boxes))

    def _instances(self, model: Model) -> list[document.Instance | None]:
        """Return the four levels of a model, all with the same faces, and its physics."""
        report = self.scene.report.about(model.name)
        if not model.mesh.triangle_count:
            raise ExportError("{}: it has no triangles; give it faces or leave it out", model.name)
        name = document.model_name(model.name, self.taken)
        if name != re.sub(r"\s", "_", model.name):
            template = "called '{}' in the files, since the viewer matches levels of detail by name"
            report.change("object-renamed", template, name)
        bones = model.skeleton if _is_rigged(model) else None
        turn = None if bones is None else joints.facing(bones)
        model = settled(model, turn)
        levels: list[list[FaceArrays]] = []
        for node, label in zip(model.levels, LEVEL_LABELS, strict=True):
            mesh = _triangles_of(node)
            if mesh is not None:
                whose = Text("{} ({} level)", model.name, Text(label.lower())) if levels else model.name
                levels.append(self._faces(mesh, name, whose, is_rigged=bones is not None))
            else:
                if node is not None:
                    template = "its {} level has no triangles; the next finer one is used instead"
                    report.change("level-without-triangles", template, Text(label.lower()))
                levels.append(levels[-1])
        rig = None if bones is None or turn is None else self._rig(model, bones, turn, levels, report)
        built: dict[int, document.Instance] = {}
        for faces in levels:
            if id(faces) not in built:
                built[id(faces)] = self._instance(model, name, faces, rig)
        filled = with_all_faces([built[id(faces)] for faces in levels], keeps_size=self.options.use_keep_level_size)
        _report_boxes_of(filled, model, report)
        instances = filled.instances
        symbols = {face.symbol for face in instances[0].geometry.faces}
        if len(symbols) > MOST_FACES and self.options.many_materials == "REFUSE":
            raise ExportError(
                "{}: it has {} materials, at most {} are possible; "
                "join some of them, or separate the object by material",
                model.name,
                len(symbols),
                MOST_FACES,
            )
        return [*instances, self._physics(model, name, symbols)]

    def _faces(self, mesh: Mesh, name: str, whose: str, *, is_rigged: bool) -> list[FaceArrays]:
        """Return the faces of a level that have triangles; material slots with the same symbol become one face."""
        faces = _faces_of(mesh, self._symbols(mesh, name), self.scene.report.about(whose), is_rigged=is_rigged)
        if not faces:
            raise ExportError("{}: all its triangles use a vertex twice; give it faces or leave it out", whose)
        return faces

    def _symbols(self, mesh: Mesh, name: str) -> list[str]:
        """Return the symbols of a mesh's slots; unused slots have an empty one."""
        return self.materials.slot_symbols(mesh.materials or [""], _used_slots(mesh), name, mesh.symbols)

    def _rig(
        self, model: Model, bones: Skeleton, turn: Matrix, levels: Sequence[Sequence[FaceArrays]], report: Report
    ) -> Rig:
        """Return the binding of a model, and add it to the bindings of its skeleton."""
        used, _ = binding.used_joints([face for faces in levels for face in faces], len(bones.joints), model.name)
        try:
            rig = binding.rig_of(bones, used, turn, self.options, skin=model.finest.skin, report=report)
        except ExportError as problem:
            raise ExportError("{}: {}", model.name, problem) from None
        _report_boxes(rig, self.options.joint_positions, report)
        if model.finest.skeleton is not None:
            self.rigs.setdefault(model.finest.skeleton, []).append(rig)
        return rig

    def _instance(self, model: Model, name: str, faces: Sequence[FaceArrays], rig: Rig | None) -> document.Instance:
        symbols = [self.materials.part_symbol(face.material, face.part) for face in faces]
        geometry, position = geometry_of(name, faces, symbols)
        instance = document.Instance(geometry, exact_matrix_of(model.finest), name, object_name=model.name)
        if rig is not None and model.finest.skeleton is not None:
            instance.skin = skin_of(rig, faces, position, list(self.rigs).index(model.finest.skeleton))
        return instance

    def _physics(self, model: Model, name: str, symbols: set[str]) -> document.Instance | None:
        """Return the physics: its mesh, or else all hulls as one mesh, or else None.

        The viewer uses the convex hull of a model without physics; any mesh here would become triangle physics. The
        shape keeps its materials if the finest level has all of them; otherwise it gets one material of the finest
        level.
        """
        report = self.scene.report.about(Text("{} (physics)", model.name))
        mesh = _triangles_of(model.physics) or _hulls(model.hulls, report)
        if mesh is None:
            return None
        of_finest = zip(model.mesh.materials or [""], self._symbols(model.mesh, name), strict=True)
        symbol_of = {material: symbol for material, symbol in of_finest if symbol}
        own = [symbol_of.get(material, "") for material in mesh.materials or [""]]
        if not all(own[slot] for slot in _used_slots(mesh)):
            own = [min(symbols)] * len(own)
        faces = _faces_of(replace(mesh, uvs=[]), own, report)
        if not faces:
            return None
        geometry, _ = geometry_of(name, faces, [face.material for face in faces])
        return document.Instance(geometry, exact_matrix_of(model.finest), name, object_name=model.name)


def _used_slots(mesh: Mesh) -> list[int]:
    """Return the slots with triangles; a mesh without materials has one slot."""
    slots: list[int] = np.unique(np.clip(mesh.material_index, 0, max(len(mesh.materials) - 1, 0))).tolist()
    return slots


def _faces_of(mesh: Mesh, symbols: Sequence[str], report: Report, *, is_rigged: bool = False) -> list[FaceArrays]:
    """Return the faces of a mesh, one for each symbol with triangles.

    ``symbols`` has the symbol of each material slot.
    """
    different = list(dict.fromkeys(symbols))
    slots = np.array([different.index(symbol) for symbol in symbols], np.int32)
    slot = slots[np.clip(mesh.material_index, 0, len(slots) - 1)]
    mesh = replace(mesh, materials=different, material_index=slot, surfaces=[])
    if not is_rigged:
        mesh = replace(mesh, joint_indices=None, joint_weights=None)
    return [face for face in faces_of(mesh, tolerance=0.0, name=report.item, report=report) if not face.is_empty]


def _placed(instances: Sequence[document.Instance | None], model: Model) -> list[document.Instance | None]:
    """Return the instances of an earlier model with the same content, placed as ``model``."""
    matrix, name = exact_matrix_of(settled(model).finest), document.model_name(model.name, set())
    return [found and replace(found, matrix=matrix, name=name, object_name=model.name) for found in instances]


def _report_boxes_of(levels: Levels, model: Model, report: Report) -> None:
    """Report how lower levels were extended to the box of the highest level."""
    if any(levels.box_triangles):
        size = np.ptp(box_of_triangles(levels.instances[0].geometry), axis=0) * np.abs(model.finest.scale)
        is_rigged = levels.instances[0].skin is not None
        weight = costs.added_weight(levels.box_triangles, size.tolist(), is_rigged=is_rigged)
        parts = [
            Text("{} {:,}", Text(label.lower()), number)
            for label, number in zip(LEVEL_LABELS, levels.box_triangles, strict=True)
            if number
        ]
        template = (
            "{} added to levels that end inside the box of the highest ({}), so that the viewer does not stretch "
            "them: up to about {:.2g} more download weight"
        )
        number = counted(sum(levels.box_triangles), "small triangle")
        report.note("level-box-triangles", template, number, joined(parts), weight)
    if levels.moved > _WORTH_SAYING:
        template = (
            "outermost vertices of levels that end just inside the box of the highest were moved to it, by {:.2%}"
        )
        report.note("level-box-vertices", template, levels.moved)


def _position_boxes(rig: Rig, choice: str) -> list[str]:
    """Return the labels of the checkboxes to tick in the upload window so that the joint positions are used."""
    if rig.joint_positions is None:
        return []
    if choice == "AUTO" and max(rig.offsets.values(), default=0.0) < ADVISED:
        return []
    return [JOINT_POSITION, *([LOCKED_SCALE] if rig.lock_scale else [])]


def _report_boxes(rig: Rig, choice: str, report: Report) -> None:
    """Warn about checkboxes of the upload window that the joint positions need."""
    if rig.joint_positions is None:
        return
    boxes = _position_boxes(rig, choice)
    if boxes:
        template = "tick {} in the upload window, or the avatar keeps its own joint positions"
        report.loss("upload-window-boxes", template, joined([Text("'{}'", box) for box in boxes], " and "))
    elif rig.offsets:
        template = "'{}' is not needed in the upload window: no joint is moved by {} or more"
        report.loss("upload-window-box-not-needed", template, JOINT_POSITION, millimetres(ADVISED))
    if rig.pelvis_offset:
        template = "set 'Z offset' in the upload window to {:.4g}; Collada files cannot store it"
        report.loss("upload-window-pelvis-offset", template, rig.pelvis_offset)


def _is_rigged(model: Model) -> bool:
    """Return whether a model is rigged: its armature has joints, and a vertex has weights."""
    return model.skeleton is not None and bool(model.skeleton.joints) and model.mesh.joint_weights is not None


def _hulls(nodes: Sequence[Node], report: Report) -> Mesh | None:
    """Return hulls as one mesh; outside Blender, a hull that is stored only as points becomes a box."""
    meshes: list[Mesh] = []
    boxes = 0
    for node in nodes:
        if node.mesh is None or not len(node.mesh.points):
            continue
        is_solid = bool(node.mesh.triangle_count)
        boxes += not is_solid
        meshes.append(node.mesh if is_solid else box_of(node.mesh.points.min(axis=0), node.mesh.points.max(axis=0)))
    if not meshes:
        return None
    number = counted(len(meshes), "hull goes", "hulls go")
    template = (
        "{} into the file as one mesh and act as triangles; 'Analyze' in the upload window makes other hulls, so set "
        "'Num Hulls' to {} or more then, and look at the result"
    )
    report.change("hulls-joined", template, number, len(meshes))
    if boxes:
        number = counted(boxes, "hull is", "hulls are")
        template = "{} stored as points only, and written as boxes; an export from Blender keeps their shape"
        report.change("hulls-as-boxes", template, number)
    return join(meshes)


def _triangles_of(node: Node | None) -> Mesh | None:
    """Return a node's mesh if it has triangles."""
    return node.mesh if node is not None and node.mesh is not None and node.mesh.triangle_count else None
