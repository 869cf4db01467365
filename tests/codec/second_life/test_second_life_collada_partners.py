"""Levels and physics in partner files: which object of a file belongs to which object of the main file."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from meshferry.io_formats.core.messages import Report
from meshferry.io_formats.second_life.collada.document import Collada, Geometry, Group, Instance, Node
from meshferry.io_formats.second_life.collada.partners import join, models_of

CUBE = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], np.float32)


def document(*names: str, size: float = 1.0, symbols: tuple[str, ...] = ("a",), **nodes: str) -> Collada:
    """Return a file with an object for each name; keywords are names of nodes by name of their geometry."""
    found = Collada()
    for name in (*names, *nodes):
        corners = np.array([0, 1, 2], np.int32)
        groups = [Group("triangles", symbol, corners, np.array([3], np.int32)) for symbol in symbols]
        found.nodes.append(Node(nodes.get(name, name), -1, np.identity(4), instances=[Instance(len(found.geometries))]))
        found.geometries.append(Geometry(name, np.float32(size) * CUBE, groups))
    return found


def paired(main: Collada, partners: Mapping[str, Collada]) -> tuple[dict[str, str], list[str]]:
    """Return the names of the geometries of each object by its node, as a text, and the codes of the warnings."""
    report = Report()
    models = models_of(join(main, partners), report)
    names = {
        model.main.name: " ".join(f"{suffix}={part.geometry.name}" for suffix, part in model.parts.items())
        for model in models
    }
    return names, [message.code for message in report.messages]


@pytest.mark.parametrize(
    ("main", "partner", "expected", "codes"),
    [
        (("Wall", "Door"), ("Door", "Wall_LOD2"), {"Wall": "_LOD2=Wall_LOD2", "Door": "_LOD2=Door"}, []),
        # Case counts, but if no name at all fits, the order of the names without regard to case.
        (("Wall", "Door"), ("door", "WALL"), {"Wall": "_LOD2=WALL", "Door": "_LOD2=door"}, []),
        (("Wall", "Door"), ("zed", "Able", "more"), {"Wall": "_LOD2=more", "Door": "_LOD2=Able", "zed": ""}, ["left"]),
        (("Wall", "Door"), ("Wall", "Window"), {"Wall": "_LOD2=Wall", "Door": "", "Window": ""}, ["left"]),
        (("my box",), ("my_box_LOD2",), {"my box": "_LOD2=my_box_LOD2"}, []),
        (("My_LODge_red",), ("My_LODge_blue",), {"My_LODge_red": "_LOD2=My_LODge_blue"}, ["cut"]),
        (("Wall", "Wall_LOD2", "Wall_PHYS"), (), {"Wall": "_LOD2=Wall_LOD2 _PHYS=Wall_PHYS"}, []),
        (("Body_PHYS",), (), {"Body_PHYS": ""}, []),
    ],
)
def test_names_pair_objects(
    main: tuple[str, ...], partner: tuple[str, ...], expected: dict[str, str], codes: list[str]
) -> None:
    spelled = {"left": "partner-object-without-match", "cut": "name-cut-by-viewer"}
    found, said = paired(document(*main), {"_LOD2": document(*partner)})
    assert found == expected
    assert said == [spelled[code] for code in codes]


def test_names_of_nodes_pair_where_those_of_geometries_do_not() -> None:
    main = document(Cube1="Wall", Cube2="Door")
    found, said = paired(main, {"_LOD1": document(Mesh9="Door_LOD1", Mesh8="Wall_LOD1")})
    assert (found, said) == ({"Wall": "_LOD1=Mesh8", "Door": "_LOD1=Mesh9"}, [])


def test_objects_with_submodels_are_not_paired_by_order() -> None:
    many = tuple("abcdefghi")
    found, said = paired(document("Wall", symbols=many), {"_LOD2": document("Other", symbols=many)})
    assert (found, said) == ({"Wall": "", "Other": ""}, ["partner-object-without-match"])


def test_the_default_shape_serves_objects_without_their_own() -> None:
    physics = document("Wall_PHYS", "default_physics_shape", size=2.0)
    found, said = paired(document("Wall", "Door"), {"_PHYS": physics})
    assert found == {"Wall": "_PHYS=Wall_PHYS", "Door": "_PHYS=default_physics_shape"}
    assert said == ["level-box-differs"]


@pytest.mark.parametrize(
    ("size", "symbols", "code"),
    [(1.02, ("a",), "level-box-differs"), (1.005, ("a",), ""), (1.0, ("a", "b"), "level-material-not-in-high")],
)
def test_differences_that_change_the_upload_are_reported(size: float, symbols: tuple[str, ...], code: str) -> None:
    _found, said = paired(document("Wall"), {"_LOD0": document("Wall", size=size, symbols=symbols)})
    assert said == ([code] if code else [])
