"""Sliders -> what they do to the joints of an armature in Blender, and which a worn mesh does not follow."""

import functools
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.body_shapes import Floats, JointShapes, Slider, WornMesh
from ...core.scene import Skin
from ..models import space
from . import classic_body
from . import joints as avatar_joints
from . import sliders as avatar_sliders
from .joints import facing_of

TABS = {
    "shape_body": "Body",
    "shape_head": "Head",
    "shape_eyes": "Eyes",
    "shape_ears": "Ears",
    "shape_nose": "Nose",
    "shape_mouth": "Mouth",
    "shape_chin": "Chin",
    "shape_torso": "Torso",
    "shape_legs": "Legs",
    "hair_eyebrows": "Eyebrows",
    "shoes": "Shoes",
}
"""Titles of the tabs of sliders by their names in the table, in the viewer's order."""
NOT_OF_SHAPES = (TABS["hair_eyebrows"], TABS["shoes"])
"""Tabs whose sliders belong to hair and shoes, not to body shapes."""
SPREAD = 20.0
"""Standard deviation of random sliders, in percent of their ranges."""

_UNUSABLE = 1e-6
"""Tolerance for comparing an inverse bind matrix with the identity, which an import stores for a singular one."""

Indices = npt.NDArray[np.intp]


@functools.cache
def sliders() -> tuple[Slider, ...]:
    """Return the sliders of the viewer's editor, tab by tab in its order, then the sex."""
    places = {tab: place for place, tab in enumerate(TABS)}
    known = sorted(
        avatar_sliders.sliders().items(), key=lambda item: (places.get(item[1].tab, len(places)), item[1].order)
    )
    return tuple(
        Slider(
            number,
            parameter.label,
            parameter.lowest_label,
            parameter.highest_label,
            parameter.percent_of(avatar_sliders.STANDARD.get(number, parameter.default)),
            parameter.percent_of(parameter.default),
            TABS.get(parameter.tab, ""),
            parameter.sex,
            number in avatar_sliders.moving_parameters(),
        )
        for number, parameter in known
    )


def values_of(percents: Mapping[int, float]) -> dict[int, float]:
    """Return the values of sliders at given positions; those that are not given are at the standard avatar's."""
    own = avatar_sliders.sliders()
    return {
        number: avatar_sliders.STANDARD.get(number, parameter.default)
        if number not in percents
        else parameter.value_at(percents[number])
        for number, parameter in own.items()
    }


def percents_of(values: Mapping[int, float]) -> dict[int, float]:
    """Return the positions of all sliders for the values of a shape; missing values are the default."""
    own = avatar_sliders.sliders()
    return {number: own[number].percent_of(value) for number, value in avatar_sliders.complete_values(values).items()}


def random_percents(seed: int) -> dict[int, float]:
    """Return random positions of the sliders of a shape, without its sex and the height above ground.

    They are normally distributed around the defaults with a standard deviation of :data:`SPREAD`, and clamped.
    """
    chosen = [slider for slider in sliders() if slider.tab not in {"", *NOT_OF_SHAPES}]
    drawn = np.random.default_rng(seed).normal([slider.default for slider in chosen], SPREAD)
    found = dict(zip((slider.number for slider in chosen), np.clip(drawn, 0.0, 100.0).tolist(), strict=True))
    del found[avatar_sliders.HOVER]
    return found


def is_attachment(name: str) -> bool:
    """Return whether a joint of that name is an attachment point."""
    known = avatar_joints.canonical(name)
    return known is not None and avatar_joints.table()[known].kind == "attachment"


def morph_weights(percents: Mapping[int, float]) -> dict[str, dict[str, float]]:
    """Return the values of shape keys of the classic avatar, by the names of its parts and of the keys.

    ``percents`` are positions of sliders by number; others stand at their ``standard``.
    """
    return classic_body.morph_weights(values_of(percents))


def joint_shapes(
    percents: Mapping[int, float],
    names: Sequence[str],
    heads: Floats,
    worn: Sequence[WornMesh] = (),
    *,
    unmoved: Sequence[str] = (),
) -> JointShapes:
    """Return what a shape does to the joints of an armature, which may face any direction.

    Joints to which an upload of the meshes would give positions stay where they are; all others go where the viewer has
    them, wherever the armature rests.

    Parameters
    ----------
    percents:
        Positions of sliders by number; others stand at their ``standard``.
    names:
        Names that the n bones have in files; bones with other names do not follow the shape.
    heads:
        (n, 3) their heads at rest, in the space of the armature.
    worn:
        The meshes that the armature deforms. They decide which joints stay where they are, since their files move them;
        without any, these are the joints that rest elsewhere than those of the standard figure.
    unmoved:
        Names in files of bones that rest where an import put them.
    """
    rig = _rig(tuple(names), np.ascontiguousarray(heads, np.float64).tobytes(), tuple(worn), tuple(unmoved))
    shaped = avatar_sliders.evaluate_shape(values_of(percents), rig.overrides, rig.locked)
    offset = shaped.position - rig.rest
    offset[avatar_sliders.joint_index()[avatar_joints.ROOT], 2] -= shaped.floor
    ratio = shaped.scale / avatar_sliders.standard_joints().scale
    scale = (rig.axes * ratio[:, None, :]) @ rig.axes.transpose(0, 2, 1)
    found = JointShapes(
        np.zeros(len(names), bool),
        np.broadcast_to(np.identity(3), (len(names), 3, 3)).copy(),
        np.zeros((len(names), 3)),
        rig.root,
        shaped.height,
        shaped.body_height,
    )
    found.is_shaped[rig.bone] = True
    found.scale[rig.bone] = scale[rig.joint]
    found.offset[rig.bone] = (offset @ rig.turn)[rig.joint]
    return found


def deformations(names: Sequence[str], heads: Floats, mesh: WornMesh, placed: Floats) -> dict[str, Floats]:
    """Return the matrices by which the bones of an armature at rest deform a mesh, as its file binds it.

    They are the identity for a mesh that is bound to the joints of the armature as these rest. A bone that is posed by
    P (in the space of the armature, relative to its rest) deforms the mesh by P times its matrix.

    Parameters
    ----------
    names, heads:
        As for :func:`joint_shapes`.
    placed:
        (4, 4) from the armature's space, in which the points of the mesh are, to that of the file's matrices.

    Returns
    -------
    dict
        (4, 4) float64 for each bone that the file lists, by its name in files; NaN if the file's matrix cannot be
        inverted.
    """
    table = avatar_joints.table()
    known = [avatar_joints.canonical(name) for name in names]
    places = {name: head for name, head in zip(known, heads, strict=True) if name is not None}
    turn = facing_of(places)[:3, :3]
    inverse_bind = np.frombuffer(mesh.inverse_bind, np.float64).reshape(-1, 4, 4)
    listed: dict[str, int] = {}
    for number, joint in enumerate(mesh.joint_names):
        listed.setdefault(avatar_joints.canonical(joint) or "", number)
    found: dict[str, Floats] = {}
    for bone, name in enumerate(known):
        if name is None or name not in listed:
            continue
        bound = inverse_bind[listed[name]]
        if np.abs(bound - np.identity(4)).max() <= _UNUSABLE:
            bound = np.full((4, 4), np.nan)
        rest = np.identity(4)
        # The import also turned the local axes of the joints.
        rest[:3, :3] = turn.T @ table[name].local[:3, :3] @ space.TO_AVATAR[:3, :3]
        rest[:3, 3] = heads[bone]
        found[names[bone]] = rest @ bound @ placed
    return found


@dataclass(frozen=True)
class _Rig:
    """The b bones of an armature that are joints of the avatar.

    Arrays of n joints are in the order of :func:`.sliders.joint_names`.
    """

    bone: Indices
    """(b,) index of each bone."""
    joint: Indices
    """(b,) index of the joint of each bone."""
    root: int
    """Index of the bone of the root, or -1."""
    turn: Floats
    """(3, 3) rotation from the axes of the armature to those of the avatar."""
    axes: Floats
    """(n, 3, 3) axes of the joints at rest as columns, in those of the armature: the avatar's, except for volumes."""
    rest: Floats
    """(n, 3) positions at rest relative to the parent, in the axes of the avatar."""
    overrides: dict[str, Floats]
    """(3,) positions relative to the parent of joints that do not follow the shape."""
    locked: frozenset[str]
    """Joints that keep their scale, too."""


@functools.lru_cache(maxsize=16)
def _rig(names: tuple[str, ...], heads_as_bytes: bytes, worn: tuple[WornMesh, ...], unmoved: tuple[str, ...]) -> _Rig:
    """Return the joints of an armature by the names of its bones in files and their heads, (n, 3) float64."""
    index, table = avatar_sliders.joint_index(), avatar_joints.table()
    heads = np.frombuffer(heads_as_bytes, np.float64).reshape(-1, 3)
    bones: dict[str, int] = {}
    for bone, name in enumerate(names):
        known = avatar_joints.canonical(name)
        if known in index and known is not None:
            bones.setdefault(known, bone)
    turn = facing_of({name: heads[bone] for name, bone in bones.items()})
    places = {name: turn[:3, :3] @ heads[bone] for name, bone in bones.items()}
    rest = {name: np.array(table[name].position) for name in index}
    for name in bones:
        above = places.get(table[name].parent)
        if above is not None:
            rest[name] = places[name] - above
    as_imported = {known for name in unmoved if (known := avatar_joints.canonical(name)) is not None}
    overrides, locked = _overrides(places, worn, turn, as_imported)
    if avatar_joints.ROOT in places and avatar_joints.ROOT not in overrides:
        rest[avatar_joints.ROOT] = places[avatar_joints.ROOT]
    overrides.pop(avatar_joints.ROOT, None)
    return _Rig(
        np.array(list(bones.values()), np.intp),
        np.array([index[name] for name in bones], np.intp),
        bones.get(avatar_joints.ROOT, -1),
        turn[:3, :3],
        turn[:3, :3].T @ np.array([table[name].axes for name in index]),
        np.array(list(rest.values())),
        overrides,
        locked,
    )


def _overrides(
    places: Mapping[str, Floats], worn: Sequence[WornMesh], turn: Floats, as_imported: Container[str]
) -> tuple[dict[str, Floats], frozenset[str]]:
    """Return the joint positions of worn meshes, and the joints that they lock.

    ``places`` are the heads of the joints, (3,), and ``turn`` leads from the armature to the space of the avatar.
    """
    from .joint_positions import JointPositions  # not at the top: panels of sliders load this module

    found: dict[str, Floats] = {}
    locked: set[str] = set()
    for mesh in worn or [WornMesh(tuple(places), (), b"", b"", is_aligned=False, is_locked=False)]:
        skin = None
        if mesh.joint_names:
            inverse_bind = np.frombuffer(mesh.inverse_bind, np.float64).reshape(-1, 4, 4)
            positions = np.frombuffer(mesh.joint_positions, np.float64).reshape(-1, 3)
            skin = Skin(
                list(mesh.joint_names),
                inverse_bind,
                np.identity(4),
                joint_positions=positions if len(positions) else None,
                is_aligned=mesh.is_aligned,
            )
        written = JointPositions(places, skin, turn, as_imported)
        used = {known for name in mesh.used if (known := avatar_joints.canonical(name)) is not None}
        moved = written.moved({above for name in used for above in avatar_joints.ancestors(name)})
        found.update({name: written.written(name) for name in moved})
        locked.update(moved if mesh.is_locked else ())
    return found, frozenset(locked)


_LEAST_SHARE = 0.1
"""Share of the weights of a mesh from which on a bone counts as one that it covers."""
_OF_HEADS = frozenset({"mHead", "mNeck"})
"""Bones whose volumes are ignored: hair, hats and jewellery usually follow the bones alone."""


@dataclass(frozen=True)
class Unfollowed:
    """What of a shape a mesh does not follow."""

    volumes: tuple[str, ...]
    """Collision volumes for which the body has weights and the mesh has none."""
    sliders: tuple[str, ...]
    """Labels of the sliders without effect on the mesh, in the order of their ids."""


def unfollowed_sliders(shares: Mapping[str, float], body: Collection[str], locked: Collection[str] = ()) -> Unfollowed:
    """Return what of a shape a mesh does not follow, compared with a body.

    The mesh is compared at the bones that have at least a tenth of its weights, except head and neck. It does not
    follow the volumes of such a bone if the body has weights for some of them and the mesh for none. A mesh with
    weights for a single joint is rigid, and compared with nothing.

    Parameters
    ----------
    shares:
        Share of the weights of the mesh for each joint with weights.
    body:
        Joints with weights of the body; empty without one.
    locked:
        Joints to which the mesh gives positions and whose scale it locks, so that no slider changes them.
    """
    table = avatar_joints.table()
    covered = {
        name for name, share in shares.items() if share >= _LEAST_SHARE and table[name].is_bone and len(shares) > 1
    }
    followed = {table[name].parent for name in shares if table[name].is_collision_volume}
    missing = [
        name
        for name, joint in table.items()
        if joint.is_collision_volume and name in body and joint.parent in covered - followed - _OF_HEADS
    ]
    own = {above for name in shares for above in avatar_joints.ancestors(name)}
    held = own.intersection(locked)
    labels = [
        avatar_sliders.parameters()[number].label
        for number, joints in _joints_of_sliders().items()
        if not joints.isdisjoint({*missing, *held}) and joints.isdisjoint(own - held)
    ]
    return Unfollowed(tuple(missing), tuple(dict.fromkeys(labels)))


@functools.cache
def _joints_of_sliders() -> Mapping[int, frozenset[str]]:
    """Return the joints that each slider changes, by its id: with a bone also its volumes, which take its scale."""
    table = avatar_joints.table()
    of_parameter: dict[int, set[str]] = {}
    for effect in avatar_sliders.effects():
        joints = of_parameter.setdefault(effect.parameter, set())
        joints.add(effect.joint)
        if any(effect.scale):
            joints.update(name for name, one in table.items() if one.is_collision_volume and one.parent == effect.joint)
    found = {number: set(of_parameter.get(number, ())) for number in avatar_sliders.sliders()}
    for ramp in avatar_sliders.driven_ramps():
        if ramp.driver in found:
            found[ramp.driver] |= of_parameter.get(ramp.driven, set())
    return {number: frozenset(joints) for number, joints in found.items() if joints and number != avatar_sliders.MALE}
