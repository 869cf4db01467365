"""Materials of imported regions, compared with the stated looks of faces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import uv_transforms

VALUE = 1e-6
TRANSPARENT = "8dcd4a48-2d37-4909-9f78-f7a9eb4ef903"
BLANK = "5748decc-f629-461c-9a36-a35a221fe21f"


def sources(socket: Any) -> list[Any]:
    """Return the nodes upstream of a socket."""
    found = [link.from_node for link in socket.links]
    return [*found, *(inner for node in found for entry in node.inputs for inner in sources(entry))]


def value_of(socket: Any) -> Any:
    """Return the constant part of a colour or factor: its own value, or that of the node that multiplies an image."""
    if not socket.is_linked:
        value = socket.default_value
        return np.array(value)[:3] if hasattr(value, "__len__") else value
    node = socket.links[0].from_node
    if node.type == "TEX_IMAGE":
        return np.ones(3) if socket.type == "RGBA" else 1.0
    constants = [entry for entry in node.inputs if entry.enabled and not entry.is_linked and entry.type == socket.type]
    return value_of(constants[0])


def linear(color: list[float]) -> Any:
    encoded = np.array(color[:3])
    return np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)


def check_face(material: Any, face: dict[str, Any], with_alpha: set[str]) -> None:
    """Compare a material with the stated look of a face."""
    shader = next(node for node in material.node_tree.nodes if node.type == "BSDF_PRINCIPLED")
    shown = shader.inputs["Emission Color" if face["full_bright"] else "Base Color"]
    np.testing.assert_allclose(value_of(shown), linear(face["colour"]), atol=VALUE)
    if face["full_bright"]:
        assert tuple(shader.inputs["Base Color"].default_value)[:3] == (0, 0, 0)
        assert shader.inputs["Specular IOR Level"].default_value == 0
        assert shader.inputs["Emission Strength"].default_value == 1
        np.testing.assert_allclose(material.diffuse_color[:3], linear(face["colour"]), atol=VALUE)
    elif face["glow"]:
        np.testing.assert_allclose(value_of(shader.inputs["Emission Color"]), linear(face["colour"]), atol=VALUE)
        assert shader.inputs["Emission Strength"].default_value == pytest.approx(face["glow"], abs=VALUE)
    else:
        assert shader.inputs["Emission Strength"].default_value == 0
    images = [node for node in sources(shown) if node.type == "TEX_IMAGE"]
    is_picture = not face["texture_missing"] and face["texture"] not in (TRANSPARENT, BLANK)
    assert [node.image.name.split(".")[0] for node in images] == ([face["texture"]] if is_picture else [])
    for node in images:
        assert node.image.alpha_mode == "CHANNEL_PACKED"
        assert not node.image.has_data
        mappings = sources(node.inputs["Vector"])
        points = uv_transforms.of_node(mappings[0]) if mappings else uv_transforms.POINTS
        wanted = uv_transforms.of_face(face["repeats"], face["offsets"], face["rotation"])
        np.testing.assert_allclose(points, wanted, atol=1e-5)
    has_alpha = is_picture and face["texture"] in with_alpha and face["colour"][3] > 0
    alpha = 0.0 if face["texture"] == TRANSPARENT else face["colour"][3]
    assert value_of(shader.inputs["Alpha"]) == pytest.approx(alpha, abs=VALUE)
    assert any(node.type == "TEX_IMAGE" for node in sources(shader.inputs["Alpha"])) == has_alpha
    assert material.surface_render_method == "DITHERED"
    assert material.use_backface_culling
