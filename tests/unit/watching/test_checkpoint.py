"""The file of standing alarms: complete or unchanged, and no other file is taken for it."""

from pathlib import Path

import pytest

from kontroller.history.watching.checkpoint import Kept, UnusableCheckpoint, read, write


def test_what_was_written_is_read_and_no_file_is_nothing_kept(tmp_path: Path) -> None:
    path = tmp_path / "watch.json"
    assert read(path) == Kept()
    write(path, Kept(clusters={"c": 7}))
    assert read(path) == Kept(clusters={"c": 7})
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("text", ["", "{", '{"clusters": 3}', '{"version": 2}'])
def test_something_else_is_refused_and_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "watch.json"
    path.write_text(text)
    with pytest.raises(UnusableCheckpoint, match=r"watch\.json"):
        read(path)
    assert path.read_text() == text


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "watch.json"
    write(path, Kept(clusters={"c": 7}))
    (tmp_path / "watch.json.new").mkdir()
    with pytest.raises(OSError, match="directory"):
        write(path, Kept(clusters={"c": 8}))
    assert read(path) == Kept(clusters={"c": 7})
