"""Nodes of a placement without a model -> empties, instances, lights, cameras and wire meshes."""

import json
from collections.abc import Sequence

import bpy

from ....io_formats.core.placement import Camera, Light, LightKind, Marker, MarkerShape, PartUse, PlacedNode, Wire
from ... import arrays, names
from ...mesh_data import checksums
from ..import_context import ImportContext

_EMPTY_SIZE = 0.25
_LIGHTS = {LightKind.POINT: "POINT", LightKind.SPOT: "SPOT", LightKind.SUN: "SUN"}
_MARKERS = {MarkerShape.CROSS: "PLAIN_AXES", MarkerShape.ARROW: "SINGLE_ARROW", MarkerShape.CUBE: "CUBE"}
WATTS = 100.0
"""Power in watts of a lamp with intensity 1. Programs with automatic exposure have no exact equivalent."""
_MOST_SUN = 10.0
OWNER = "belongs to"
"""Name of the custom property that holds the path of the file in which a node can be changed."""


class NodeObjects:
    """Creates the objects of nodes; ``parts`` are the collections of the files that nodes refer to."""

    def __init__(self, job: ImportContext, parts: Sequence[bpy.types.Collection]) -> None:
        self.job = job
        self.parts = parts
        self._wires: dict[int, bpy.types.Mesh] = {}
        """The mesh of each wire so far, by the wire's ``id``."""

    def build(self, node: PlacedNode, name: str) -> bpy.types.Object:
        """Create the object of a node, without its transform."""
        content = node.content
        made: bpy.types.Object = self.job.keep(bpy.data.objects.new(name, self._data(node)))
        if made.data is None:
            made.empty_display_size = content.size if isinstance(content, Marker) else _EMPTY_SIZE
        if isinstance(content, PartUse):
            made.instance_type = "COLLECTION"
            made.instance_collection = self.parts[content.part]
        elif isinstance(content, Wire):
            made.display_type = "WIRE"
            made.hide_render = True
            made.hide_select = not content.is_selectable
            if not made.data.meshferry.fingerprint:
                checksums.store_fingerprint(made)
            made.meshferry.given_mesh = checksums.identity_of(made.data)
        elif isinstance(content, Marker):
            made.empty_display_type = _MARKERS[content.shape]
            made.show_name = True
        given = {"type": node.kind, **node.properties, OWNER: node.owner}
        given = {key: value for key, value in given.items() if value}
        for key, value in given.items():
            made[key] = value
        if given:
            made.meshferry.given_properties = json.dumps(given)
        if node.owner:
            lock(made)
        return made

    def set_camera(self, node: PlacedNode, made: bpy.types.Object) -> None:
        """Use the object of the main camera as the camera of a scene that has none."""
        scene = self.job.request.context.scene
        if isinstance(node.content, Camera) and node.content.is_main and scene.camera is None:
            scene.camera = made

    def _data(self, node: PlacedNode) -> bpy.types.ID | None:
        if isinstance(node.content, Light):
            return self._light(node.name, node.content)
        if isinstance(node.content, Camera):
            return self._camera(node.name, node.content)
        return self._wire(node.content) if isinstance(node.content, Wire) else None

    def _wire(self, wire: Wire) -> bpy.types.Mesh:
        if id(wire) not in self._wires:
            data: bpy.types.Mesh = self.job.keep(bpy.data.meshes.new(names.fit(wire.name)))
            data.vertices.add(len(wire.points))
            data.edges.add(len(wire.edges))
            data.vertices.foreach_set("co", arrays.flat(wire.points))
            data.edges.foreach_set("vertices", arrays.flat(wire.edges, wire.edges.dtype.type))
            self._wires[id(wire)] = data
        return self._wires[id(wire)]

    def _light(self, name: str, light: Light) -> bpy.types.Light:
        data = self.job.keep(bpy.data.lights.new(names.fit(name), _LIGHTS[light.kind]))
        data.color = light.color
        if light.kind is LightKind.SUN:
            data.energy = min(light.intensity, _MOST_SUN)
            return data  # type: ignore[no-any-return]
        data.energy = light.intensity * WATTS
        data.shadow_soft_size = light.radius
        if light.kind is LightKind.SPOT:
            data.spot_size = light.cone
            data.spot_blend = light.softness
        return data  # type: ignore[no-any-return]

    def _camera(self, name: str, camera: Camera) -> bpy.types.Camera:
        data: bpy.types.Camera = self.job.keep(bpy.data.cameras.new(names.fit(name)))
        data.sensor_fit = "VERTICAL"
        if camera.field_of_view:
            data.angle = camera.field_of_view
        else:
            data.type = "ORTHO"
            data.ortho_scale = camera.height
        data.clip_start, data.clip_end = camera.near, camera.far
        return data


def lock(made: bpy.types.Object) -> None:
    """Lock the transform of an object, so that it is not changed by accident."""
    made.lock_location = made.lock_rotation = made.lock_scale = (True, True, True)
    made.lock_rotation_w = True
