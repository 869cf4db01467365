"""Files that stand for a right: one process at a time, and none that holds a file which is gone."""

import errno
import os
import sys
from pathlib import Path

import pytest
from meshferry.io_formats.disk import locks


@pytest.mark.skipif(sys.platform == "win32", reason="no FIFOs, and links need a privilege")
@pytest.mark.parametrize("kind", ["fifo", "link"])
def test_a_fifo_or_link_in_the_place_of_a_lock_file_is_an_error(tmp_path, kind):
    path = tmp_path / "lock"
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / "new")
    with pytest.raises(OSError, match="not a regular file"):
        locks.hold(path)
    assert not (tmp_path / "new").exists()


def test_a_held_file_is_held_until_it_is_closed(tmp_path):
    path = tmp_path / "lock"
    first = locks.hold(path)
    assert first is not None and locks.hold(path) is None
    first.close()
    second = locks.hold(path)
    assert second is not None
    second.close()


def test_who_removes_it_has_held_it_and_the_next_makes_it_anew(tmp_path):
    path = tmp_path / "lock"
    locks.remove(path, locks.hold(path))
    assert not path.exists()
    held = locks.hold(path)
    assert held is not None and path.exists()
    held.close()


@pytest.mark.skipif(sys.platform == "win32", reason="open files cannot be removed there")
def test_a_file_that_was_removed_while_it_was_waited_for_is_not_the_right_one(tmp_path, monkeypatch):
    path = tmp_path / "lock"
    real = locks.lock
    looks = []

    def lock(stream):
        looks.append(stream)
        if len(looks) < 3:
            path.unlink()
        return real(stream)

    monkeypatch.setattr(locks, "lock", lock)
    with locks.hold(path) as held:
        assert len(looks) == 3 and os.path.samestat(os.fstat(held.fileno()), path.stat())


def test_a_place_that_never_stays_is_an_error_not_a_hang(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "lock", lambda stream: True)
    monkeypatch.setattr(os.path, "samestat", lambda one, other: False)
    with pytest.raises(OSError, match=os.strerror(errno.EBUSY)):
        locks.hold(tmp_path / "lock")


@pytest.mark.parametrize("refusals", [2, 1000])
def test_a_lock_file_that_another_process_removes_is_tried_again_on_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusals: int
) -> None:
    real, left = locks.open_regular, [PermissionError(13, "Permission denied")] * refusals

    def open_file(path: Path, flags: int) -> int:
        if left:
            raise left.pop()
        return real(path, flags)

    monkeypatch.setattr(locks, "open_regular", open_file)
    monkeypatch.setattr(locks, "lock", lambda _stream: True)  # msvcrt exists on Windows only
    monkeypatch.setattr(locks.time, "sleep", lambda _seconds: None)
    monkeypatch.setattr(locks.sys, "platform", "win32")
    if refusals == 2:
        held = locks.hold(tmp_path / "a.lock")
        assert held is not None
        held.close()
    else:
        with pytest.raises(PermissionError):
            locks.hold(tmp_path / "a.lock")
