"""Segments that grow, are cut, go and come: each whole line is read, and no half one."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from controller_core.process.journal_http import make_journal_routes
from kontroller.history.sources.caps import Caps
from kontroller.history.sources.journal_http import JournalUnreadable
from kontroller.history.sources.journal_tokens import JournalTokens
from kontroller.history.watching.journals import segments
from kontroller.history.watching.journals.folder import FolderJournal
from kontroller.history.watching.journals.journal import Journal
from kontroller.history.watching.journals.served import ServedJournal
from tests.unit.watching.lines import alive, snapshot

TOKEN = "a-token-of-the-tests"


@asynccontextmanager
async def serve(*routes: web.RouteDef) -> AsyncIterator[str]:
    """The address of the journal that routes serve."""
    application = web.Application()
    application.add_routes(routes)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/journal"
    await runner.cleanup()


def tokens_of(folder: Path, token: str = TOKEN) -> JournalTokens:
    """Return the tokens of a reader that has this token in a file of the folder."""
    (folder / "token").write_text(token)
    return JournalTokens.parse([str(folder / "token")], [])


@pytest.fixture(params=["folder", "served", "served for a token"])
async def journal(request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same directory, read from the disk and over HTTP."""
    if request.param == "folder":
        yield FolderJournal(tmp_path)
        return
    tokens = tokens_of(tmp_path_factory.mktemp("token")) if request.param.endswith("token") else None
    routes = make_journal_routes(tmp_path, tokens.of_others if tokens else None)
    async with serve(*routes) as url, aiohttp.ClientSession() as session:
        yield ServedJournal(url, session, tokens)


async def read_to_the_end(journal: Journal) -> list[bytes]:
    lines: list[bytes] = []
    while True:
        chunk = await journal.read()
        lines += chunk.lines
        if chunk.is_at_end:
            return lines


def append(directory: Path, name: str, *lines: bytes, end: bytes = b"\n") -> None:
    with (directory / name).open("ab") as file:
        file.write(b"\n".join(lines) + end)


FIRST, SECOND = "0000000001-000000000000000.jsonl", "0000000001-000000000000009.jsonl"


async def test_lines_come_once_and_only_whole_ones(journal: Journal, tmp_path: Path) -> None:
    assert await read_to_the_end(journal) == []
    append(tmp_path, FIRST, b"1", b"2", b"thr", end=b"")
    assert await read_to_the_end(journal) == [b"1", b"2"]
    assert await read_to_the_end(journal) == []
    append(tmp_path, FIRST, b"ee", b"4")
    assert await read_to_the_end(journal) == [b"three", b"4"]


async def test_a_segment_is_read_to_its_end_before_the_next(journal: Journal, tmp_path: Path) -> None:
    append(tmp_path, FIRST, b"1")
    assert await read_to_the_end(journal) == [b"1"]
    append(tmp_path, FIRST, b"2", b"torn by a crash", end=b"")
    append(tmp_path, SECOND, b"3")
    assert await read_to_the_end(journal) == [b"2", b"3"]


async def test_what_a_writer_cuts_off_and_writes_again_is_read(journal: Journal, tmp_path: Path) -> None:
    append(tmp_path, FIRST, b"1", b"block that failed")
    assert await read_to_the_end(journal) == [b"1", b"block that failed"]
    (tmp_path / FIRST).write_bytes(b"1\n")
    assert await read_to_the_end(journal) == []
    append(tmp_path, FIRST, b"block again")
    assert await read_to_the_end(journal) == [b"block again"]


async def test_a_segment_that_retention_takes_away_is_passed_over(journal: Journal, tmp_path: Path) -> None:
    append(tmp_path, FIRST, b"1")
    assert await read_to_the_end(journal) == [b"1"]
    (tmp_path / FIRST).unlink()
    assert await read_to_the_end(journal) == []
    append(tmp_path, SECOND, b"2")
    assert await read_to_the_end(journal) == [b"2"]


async def test_a_writer_that_lost_its_directory_is_read_from_its_new_beginning(
    journal: Journal, tmp_path: Path
) -> None:
    append(tmp_path, SECOND, b"9")
    assert await read_to_the_end(journal) == [b"9"]
    (tmp_path / SECOND).unlink()
    append(tmp_path, FIRST, b"1")
    assert await read_to_the_end(journal) == [b"1"]


async def test_a_new_segment_with_the_name_of_a_lost_one_is_read(journal: Journal, tmp_path: Path) -> None:
    append(tmp_path, FIRST, b"before 1", b"before 2")
    assert await read_to_the_end(journal) == [b"before 1", b"before 2"]
    (tmp_path / FIRST).write_bytes(b"after 1\n")
    assert await read_to_the_end(journal) == [b"after 1"]


async def test_it_begins_with_the_newest_whole_snapshot(journal: Journal, tmp_path: Path) -> None:
    begun = snapshot(20, 3)[0]
    append(tmp_path, "0000000001-000000000000000.jsonl", b"old", *snapshot(1, 1))
    append(tmp_path, "0000000001-000000000000005.jsonl", b"newer", *snapshot(6, 2))
    append(tmp_path, "0000000001-000000000000010.jsonl", alive(10, 2.5))
    append(tmp_path, "0000000001-000000000000020.jsonl", begun)
    assert await read_to_the_end(journal) == [b"newer", *snapshot(6, 2), alive(10, 2.5), begun]


async def test_a_snapshot_across_segments_is_a_whole_one(journal: Journal, tmp_path: Path) -> None:
    started, ended = snapshot(6, 2)
    append(tmp_path, "0000000001-000000000000000.jsonl", *snapshot(1, 1))
    append(tmp_path, "0000000001-000000000000005.jsonl", b"5", started)
    append(tmp_path, "0000000001-000000000000007.jsonl", ended)
    assert await read_to_the_end(journal) == [b"5", started, ended]


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "CHUNK_BYTES", 64)


async def test_a_segment_above_the_cap_makes_a_served_journal_unreadable() -> None:
    async def index(_: web.Request) -> web.Response:
        return web.json_response({"segments": [{"name": FIRST, "bytes": 1 << 40}]})

    async with serve(web.get("/journal", index)) as url, aiohttp.ClientSession() as session:
        with pytest.raises(JournalUnreadable, match=rf"{FIRST} is left out: .* --max-file-bytes 1073741824"):
            await ServedJournal(url, session).read()


async def test_the_rest_of_a_long_part_is_read_in_usual_parts(small_parts: None, tmp_path: Path) -> None:
    append(tmp_path, FIRST, b"x" * 200, *([b""] * 500), b"3")
    journal = FolderJournal(tmp_path, Caps(line_bytes=1024))
    while not (chunk := await journal.read()).lines:
        assert not chunk.is_at_end
    assert chunk.lines == [b"x" * 200]
    assert (await read_to_the_end(journal))[-1] == b"3"


async def test_lines_longer_than_a_part_are_read_and_absurd_ones_passed_over(small_parts: None, tmp_path: Path) -> None:
    append(tmp_path, FIRST, b"1", b"x" * 200, b"2", b"y" * 1000, b"3")
    append(tmp_path, SECOND, b"4")
    lines = await read_to_the_end(FolderJournal(tmp_path, Caps(line_bytes=256)))
    assert [one for one in lines if len(one) == 1] == [b"1", b"2", b"3", b"4"]
    assert b"x" * 200 in lines
    assert max(map(len, lines)) <= 256


async def test_folders_of_several_controllers_are_read_and_one_that_is_begun_later_too(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    append(tmp_path / "a", FIRST, b"a1")
    journal = FolderJournal(tmp_path)
    assert await read_to_the_end(journal) == [b"a1"]
    append(tmp_path / "b", FIRST, b"b1")
    append(tmp_path / "a", FIRST, b"a2")
    assert sorted(await read_to_the_end(journal)) == [b"a2", b"b1"]


async def test_a_folder_that_is_removed_is_not_read_again(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    append(tmp_path / "a", FIRST, b"a1")
    append(tmp_path / "b", FIRST, b"b1")
    journal = FolderJournal(tmp_path)
    assert sorted(await read_to_the_end(journal)) == [b"a1", b"b1"]
    shutil.rmtree(tmp_path / "b")
    assert await read_to_the_end(journal) == []
    (tmp_path / "b").mkdir()
    append(tmp_path / "b", FIRST, b"b2")
    assert await read_to_the_end(journal) == [b"b2"]


async def test_a_folder_that_cannot_be_read_keeps_no_other_from_being_read(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / FIRST).symlink_to(tmp_path / "nowhere")
    append(tmp_path / "a", FIRST, b"a1")
    journal = FolderJournal(tmp_path)
    assert (await journal.read()).lines == [b"a1"]
    with pytest.raises(JournalUnreadable, match="cannot be read"):
        await journal.read()
    append(tmp_path / "a", FIRST, b"a2")
    assert (await journal.read()).lines == [b"a2"]


async def test_what_is_not_there_is_said_and_is_read_once_it_is(tmp_path: Path) -> None:
    journal = FolderJournal(tmp_path / "later")
    with pytest.raises(JournalUnreadable, match="is not a folder on this machine"):
        await journal.read()
    (tmp_path / "later").mkdir()
    append(tmp_path / "later", FIRST, b"1")
    assert await read_to_the_end(journal) == [b"1"]


async def test_a_server_that_is_away_or_serves_something_else_is_said_without_its_password() -> None:
    async with aiohttp.ClientSession() as session:
        journal = ServedJournal("http://me:secret@127.0.0.1:1/journal", session)
        with pytest.raises(JournalUnreadable, match=r"http://127\.0\.0\.1:1/journal cannot be read") as error:
            await journal.read()
        assert "secret" not in str(error.value)
        assert "secret" not in journal.name


async def test_a_reader_without_the_token_says_what_to_give_and_reads_once_it_has_it(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    append(tmp_path, FIRST, b"1")
    servers, readers = (tmp_path_factory.mktemp(name) for name in ("servers", "readers"))
    routes = make_journal_routes(tmp_path, tokens_of(servers).of_others)
    async with serve(*routes) as url, aiohttp.ClientSession() as session:
        journal = ServedJournal(url, session, tokens_of(readers, "another-token-than-that"))
        with pytest.raises(JournalUnreadable, match=r"answers 401 Unauthorized: .* --journal-token-file") as error:
            await journal.read()
        assert "another-token" not in str(error.value)
        (readers / "token").unlink()
        with pytest.raises(JournalUnreadable, match=r"cannot be read: .*token cannot be read"):
            await journal.read()
        tokens_of(readers)
        assert await read_to_the_end(journal) == [b"1"]
