"""Products of vectors, against numpy's."""

import numpy as np
import pytest
from meshferry.io_formats.geometry.transforms import cofactors, cross


@pytest.mark.parametrize("kinds", [(np.float32, np.float32), (np.float64, np.float32), (np.float64, np.float64)])
@pytest.mark.parametrize("count", [0, 1, 500])
def test_cross_products_to_the_bit(kinds, count):
    random = np.random.default_rng(1)
    one, other = (random.normal(size=(count, 3)).astype(kind) for kind in kinds)
    found, wanted = cross(one, other), np.cross(one, other)
    assert found.dtype == wanted.dtype and found.tobytes() == wanted.tobytes()


def test_cofactors():
    random = np.random.default_rng(2)
    for _ in range(50):
        matrix = random.normal(size=(3, 3))
        assert np.allclose(cofactors(matrix), np.linalg.det(matrix) * np.linalg.inv(matrix).T)
    assert cofactors(np.diag((0.0, 2.0, 3.0))).tolist() == np.diag((6.0, 0.0, 0.0)).tolist()
