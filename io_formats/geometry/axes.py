"""Conversion of handedness, up axis and winding between a format's space and Blender's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Basis:
    """A signed permutation of axes, from a file's space to Blender's (right-handed, Z up).

    ``order`` is, for x, y and z in Blender, the file's axis (0, 1, 2); ``signs`` is its sign. ``basis.inverse``
    converts back to the file's space with the same methods.
    """

    order: tuple[int, int, int]
    signs: tuple[int, int, int]

    @property
    def inverse(self) -> Basis:
        order = [0, 0, 0]
        signs = [1, 1, 1]
        for target, (source, sign) in enumerate(zip(self.order, self.signs, strict=True)):
            order[source] = target
            signs[source] = sign
        return Basis((order[0], order[1], order[2]), (signs[0], signs[1], signs[2]))

    @property
    def mirrors(self) -> bool:
        """Whether handedness changes, and with it winding and the sign of bitangents."""
        permutation = np.zeros((3, 3))
        permutation[range(3), self.order] = self.signs
        return bool(np.linalg.det(permutation) < 0)

    def vectors(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.float32]:
        """Convert points, normals or directions, (…, 3) or more columns; further columns are copied."""
        mapped = np.empty(values.shape, np.float32)
        with np.errstate(invalid="ignore"):  # NumPy warns about signalling NaN
            for target, (source, sign) in enumerate(zip(self.order, self.signs, strict=True)):
                # Not np.negative: NumPy 2.4 writes wrong values with some strides.
                np.multiply(values[..., source], np.float32(sign), out=mapped[..., target], casting="same_kind")
        mapped[..., 3:] = values[..., 3:]
        return mapped

    def scales(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.float32]:
        """Convert scale factors (…, 3): axes are permuted, signs are kept."""
        return np.ascontiguousarray(values[..., list(self.order)], np.float32)

    def quaternions_from_xyzw(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.float32]:
        """Convert file quaternions (…, 4; x, y, z, w) to Blender's (w, x, y, z)."""
        mapped = np.empty(values.shape, np.float32)
        mapped[..., 0] = values[..., 3]
        mapped[..., 1:] = self._turn_axes(values[..., :3])
        return mapped

    def quaternions_to_xyzw(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.float32]:
        """Convert quaternions (…, 4; w, x, y, z) of this basis' source space to (x, y, z, w) of its target."""
        mapped = np.empty(values.shape, np.float32)
        mapped[..., 3] = values[..., 0]
        mapped[..., :3] = self._turn_axes(values[..., 1:])
        return mapped

    def _turn_axes(self, axes: npt.NDArray[np.generic]) -> npt.NDArray[np.float32]:
        """Convert rotation axes; a mirrored basis reverses the direction of rotation."""
        turned = self.vectors(axes)
        return turned * np.float32(-1) if self.mirrors else turned


def flip_winding(corners: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Reverse the corners of every triangle: of (C,) values, (a, b, c) becomes (c, b, a)."""
    return np.ascontiguousarray(corners.reshape(-1, 3)[:, ::-1]).reshape(-1)
