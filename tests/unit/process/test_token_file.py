"""A token in a file: clients that send it are admitted, it can be rotated, and no text contains it."""

from pathlib import Path

import pytest

from controller_core.process.http import read_token
from controller_core.process.settings import InvalidSettings
from controller_core.security.token_file import TokenFile, UnusableToken

OLD, NEW = "old-token-0123456789", "new.token~0123456789/+="


def file_of(folder: Path, *lines: str) -> TokenFile:
    path = folder / "token"
    path.write_text("\n".join(lines))
    return TokenFile(path=path)


def test_who_shows_the_token_is_admitted_and_nobody_else(tmp_path: Path) -> None:
    token = file_of(tmp_path, f"  {OLD}  ", "")
    for shown in (token.authorization(), f"bearer  {OLD} "):
        assert token.admits(shown)
    for shown in (
        "",
        OLD,
        "Bearer",
        "Bearer ",
        f"Basic {OLD}",
        f"Bearer {OLD}x",
        f"Bearer {OLD[:-1]}",
        "Bearer \udcff\xe9",
    ):
        assert not token.admits(shown)


def test_all_lines_are_taken_and_the_first_is_shown_so_that_a_token_can_be_changed(tmp_path: Path) -> None:
    before = file_of(tmp_path, OLD).authorization()
    token = file_of(tmp_path, NEW, OLD)
    assert token.admits(before)
    assert token.authorization() == f"Bearer {NEW}"
    token = file_of(tmp_path, NEW)
    assert not token.admits(before)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "has no token"),
        (b"\n \n", "has no token"),
        (b"s3cret", "has no token or an invalid one"),
        (b"s3cret with spaces in it", "an invalid one"),
        (b"s3cret-0123456789-\xc3\xa9", "is not ASCII text"),
        (b"s3cret-0123456789\x00", "an invalid one"),
        (b"s3cret-0123456789\n" * 5000, "is larger than"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_and_not_what_is_in_it(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(UnusableToken, match=said) as error:
        TokenFile(path=path).admits("Bearer x")
    assert str(path) in str(error.value)
    assert "s3cret" not in f"{error.value}{error.value.__cause__!r}"


def test_a_process_does_not_start_without_the_token_that_it_is_told_of(tmp_path: Path) -> None:
    path, option = tmp_path / "token", "--journal-token-file"
    assert read_token(None, option) is None
    with pytest.raises(InvalidSettings, match=r"--journal-token-file: .*token cannot be read: No such file"):
        read_token(path, option)
    file_of(tmp_path, OLD)
    assert read_token(path, option) == TokenFile(path=path)
