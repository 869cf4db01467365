"""What the artist reads at the end."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.needs_bpy

PARTS = ("3 objects", "12,804 triangles")


def _messages():
    from meshferry.operators.reports import Messages

    return Messages()


def _conclude(listener, messages, parts=PARTS):
    from meshferry.operators.reports import conclude

    return conclude(listener, messages, parts, "Imported")


def _succeed(messages, name, *warnings):
    with messages.outcome(f"/models/{name}"):
        messages.warn(name, warnings)


def _fail(messages, name, cause="it is cut off"):
    from meshferry.io_formats.core.errors import FormatError

    with messages.outcome(f"/models/{name}"):
        raise FormatError(cause, file=f"/models/{name}")


def test_one_file(clean_blender, listener):
    messages = _messages()
    _succeed(messages, "mill.timbermesh")
    assert _conclude(listener, messages) == {"FINISHED"}
    assert listener.reports == [("INFO", "mill.timbermesh: 3 objects, 12,804 triangles")]


def test_one_file_with_warnings(clean_blender, listener):
    messages = _messages()
    _succeed(messages, "mill.timbermesh", "first", "second", "first")
    _conclude(listener, messages)
    assert listener.said("WARNING") == ["first", "second", "mill.timbermesh: 3 objects, 12,804 triangles, 2 warnings"]


def test_line_breaks_in_names_are_escaped(clean_blender, listener):
    messages = _messages()
    _succeed(messages, "mill.timbermesh", "bone 'a\nb'", "bone 'c\r\nd\x1b[31m\x9b\u2028'")
    _conclude(listener, messages)
    assert listener.said("WARNING")[:2] == [r"bone 'a\nb'", r"bone 'c\r\nd\x1b[31m\x9b\u2028'"]


def test_one_of_several_fails(clean_blender, listener):
    messages = _messages()
    for number in range(19):
        _succeed(messages, f"{number}.timbermesh")
    _fail(messages, "broken.timbermesh")
    assert _conclude(listener, messages) == {"FINISHED"}
    assert listener.reports == [
        ("WARNING", "Imported 19 of 20 files (3 objects, 12,804 triangles); broken.timbermesh: it is cut off")
    ]


def test_a_failure_among_several_is_an_error_for_a_user(clean_blender, listener):
    """Blender shows errors in a popup; in a script they would raise an exception."""
    messages = _messages()
    _succeed(messages, "mill.timbermesh")
    _fail(messages, "broken.timbermesh")
    listener.is_from_user = lambda: True
    assert _conclude(listener, messages) == {"FINISHED"}
    assert [level for level, _text in listener.reports] == ["ERROR"]
    _succeed(only := _messages(), "mill.timbermesh", "first")
    _conclude(listener, only)
    assert [level for level, _text in listener.reports[1:]] == ["WARNING"]


def test_equal_warnings_of_several_files_are_one(clean_blender, listener):
    messages = _messages()
    for name in "abcde":
        _succeed(messages, name, "no normals")
    _conclude(listener, messages)
    summary = "Imported 5 files: 3 objects, 12,804 triangles, 1 warning: a, b, c and 2 more: no normals"
    assert listener.said("WARNING") == [summary]


@pytest.mark.parametrize("count", [1, 3])
def test_nothing_succeeds(clean_blender, listener, count):
    messages = _messages()
    for number in range(count):
        _fail(messages, f"{number}.timbermesh")
    assert _conclude(listener, messages) == {"CANCELLED"}
    assert len(listener.said("WARNING")) == count - 1  # the summary has the first
    kind, text = listener.reports[-1]
    assert kind == "ERROR"
    assert "0.timbermesh: it is cut off" in text
    assert "/models" not in text
    assert ("and 2 more" in text) == (count == 3)


def test_a_crowd_of_warnings_goes_into_a_text(clean_blender, listener):
    from meshferry.operators.reports import MOST_WARNINGS, REPORT_TEXT

    messages = _messages()
    _succeed(messages, "mill.timbermesh", *(f"warning {number}" for number in range(50)))
    _conclude(listener, messages)
    assert len(listener.said("WARNING")) == MOST_WARNINGS + 2
    assert "30 more" in listener.said("WARNING")[MOST_WARNINGS]
    lines = clean_blender.data.texts[REPORT_TEXT].as_string().split()
    assert lines.count("warning") == 50


def test_few_warnings_leave_no_text(clean_blender, listener):
    messages = _messages()
    _succeed(messages, "mill.timbermesh", "one")
    _conclude(listener, messages)
    assert not clean_blender.data.texts


def test_unexpected_trouble_names_versions_and_hides_the_home(clean_blender, listener, monkeypatch, capsys):
    from meshferry.operators.reports import RAISE_SWITCH, addon_version

    monkeypatch.delenv(RAISE_SWITCH, raising=False)
    messages = _messages()
    with messages.outcome("/models/odd.timbermesh"):
        raise RuntimeError(f"cannot do {Path.home()}/models/odd.timbermesh")
    assert _conclude(listener, messages) == {"CANCELLED"}
    text = listener.said("ERROR")[0]
    assert text.startswith("odd.timbermesh: ")
    assert addon_version() in text
    assert clean_blender.app.version_string in text
    assert str(Path.home()) not in text
    assert "~" in text
    assert "Traceback" in capsys.readouterr().err


def test_unexpected_trouble_is_raised_when_asked(clean_blender, monkeypatch):
    from meshferry.operators.reports import RAISE_SWITCH

    monkeypatch.setenv(RAISE_SWITCH, "1")
    messages = _messages()
    with pytest.raises(ZeroDivisionError), messages.outcome("/models/odd.timbermesh"):
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("{home}/a.timbermesh: bad", "~/a.timbermesh: bad"),
        ("in '{home}'", "in '~'"),
        ("{home}stead/a", "{home}stead/a"),
    ],
)
def test_masking_the_home(clean_blender, text, masked):
    from meshferry.operators import reports

    home = str(Path.home())
    assert reports.readable(text.format(home=home)) == masked.format(home=home)
