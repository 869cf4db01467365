"""Which 3D view an import frames, and how far that view has to see. The window test frames real views."""

from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.needs_bpy


@pytest.mark.parametrize(
    ("start", "end", "distance", "expected"),
    [
        (0.01, 1000.0, 12.0, (0.01, 1000.0)),
        (0.01, 1000.0, 333.0, (0.01, 1000.0)),
        (0.01, 1000.0, 340.0, (0.02, 2000.0)),
        (0.01, 1000.0, 1470.0, (0.1, 10_000.0)),
        (0.01, 1000.0, 29_405.0, (2.0, 200_000.0)),
        (1.0, 100.0, 2400.0, (2.4, 10_000.0)),
        (0.5, 100.0, 45.0, (0.5, 200.0)),
    ],
)
def test_the_clip_range_holds_what_is_framed(clean_blender, start, end, distance, expected):
    from meshferry.operators.selection import clip_range_for

    assert clip_range_for(start, end, distance) == pytest.approx(expected)


def _area(width=100, height=100, perspective="PERSP", **differences):
    space = {"lock_object": None, "lock_cursor": False, "local_view": None, **differences}
    space["region_3d"] = SimpleNamespace(view_perspective=perspective, view_distance=1.0)
    spaces = SimpleNamespace(active=SimpleNamespace(**space))
    return SimpleNamespace(type="VIEW_3D", width=width, height=height, spaces=spaces)


def _context(here, *others, area=None):
    layer = object()
    windows = [SimpleNamespace(screen=SimpleNamespace(areas=areas), view_layer=layer) for areas in (here, *others)]
    manager = SimpleNamespace(windows=windows)
    return SimpleNamespace(window_manager=manager, window=windows[0], view_layer=layer, area=area, mode="OBJECT")


@pytest.fixture
def in_window(clean_blender, monkeypatch):
    """Let the tested module take this Blender for one with a window; yield the areas that are framed."""
    from meshferry.operators import selection

    framed = []
    app = SimpleNamespace(background=False)
    monkeypatch.setattr(selection, "bpy", SimpleNamespace(app=app))
    monkeypatch.setattr(selection.View, "frame", lambda view, *, only_selected: framed.append(view.area))
    return framed


SHOWN = SimpleNamespace(select_get=lambda: True, visible_get=lambda: True)
HIDDEN = SimpleNamespace(select_get=lambda: False, visible_get=lambda: False)


def test_the_view_of_the_drop_is_framed_or_else_the_largest(in_window):
    from meshferry.operators.selection import frame_imported

    small, large, larger = _area(), _area(width=200), _area(width=300)
    outliner = SimpleNamespace(type="OUTLINER", width=900, height=900)
    for area, expected in ((small, small), (outliner, large), (None, large), (larger, larger)):
        frame_imported(_context([small, large, outliner], [larger], area=area), [SHOWN])
        assert in_window.pop() is expected
    assert not in_window


@pytest.mark.parametrize(
    "area",
    [_area(perspective="CAMERA"), _area(local_view=object()), _area(lock_object=object()), _area(lock_cursor=True)],
    ids=["camera", "local", "object", "cursor"],
)
def test_views_that_show_something_on_purpose_stay(in_window, area):
    from meshferry.operators.selection import frame_imported

    frame_imported(_context([area], area=area), [SHOWN])
    assert not in_window
    other = _area(width=10)
    frame_imported(_context([area, other], area=area), [SHOWN])
    assert in_window == [other]


def test_windows_with_another_scene_stay(in_window):
    from meshferry.operators.selection import frame_imported

    elsewhere, here = _area(width=300), _area()
    context = _context([_area(perspective="CAMERA")], [elsewhere], [here])
    context.window_manager.windows[1].view_layer = object()
    frame_imported(context, [SHOWN])
    assert in_window == [here]


def test_nothing_is_framed_if_it_is_hidden_unwanted_or_without_a_window(in_window, monkeypatch):
    from meshferry.operators import selection

    context = _context([_area()])
    selection.frame_imported(context, [])
    selection.frame_imported(context, [HIDDEN])
    context.mode = "POSE"
    selection.frame_imported(context, [SHOWN])
    context.mode = "OBJECT"
    with monkeypatch.context() as patch:
        patch.setattr(selection, "frames_imported", lambda: False)
        selection.frame_imported(context, [SHOWN])
    selection.bpy.app.background = True
    selection.frame_imported(context, [SHOWN])
    assert not in_window


def test_importers_frame_what_they_imported(clean_blender, monkeypatch):
    from pathlib import Path

    from meshferry.operators.files import import_base

    framed = []
    monkeypatch.setattr(import_base, "frame_imported", lambda _context, objects: framed.append(len(objects)))
    example = Path(__file__).resolve().parents[2] / "examples" / "lamp.mesh"
    clean_blender.ops.import_scene.unigine(filepath=str(example))
    assert framed == [2]
