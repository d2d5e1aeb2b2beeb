"""A journal that a controller serves is copied, and the copy follows it whatever happens to either."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from aiohttp import web

from controller_core.process.journal_http import CHUNK_BYTES, journal_routes
from controller_pipeline.sources.journal_http import JournalUnreachable, fetch

NAME = "0000000001-000000000000000.jsonl"


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """The directory of a controller's journal."""
    directory = tmp_path / "served"
    directory.mkdir()
    return directory


@pytest.fixture
def url(served: Path) -> Iterator[str]:
    """Where the production routes serve it, on a loop of their own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def start() -> tuple[web.AppRunner, int]:
        application = web.Application()
        application.add_routes(journal_routes(served))
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return runner, runner.addresses[0][1]

    runner, port = asyncio.run_coroutine_threadsafe(start(), loop).result()
    yield f"http://127.0.0.1:{port}/journal"
    asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def lines(*numbers: int) -> bytes:
    return b"".join(b'{"seq":%d}\n' % number for number in numbers)


def test_a_copy_is_the_same_bytes_and_grows_with_its_segment(served: Path, url: str, tmp_path: Path) -> None:
    for count in (1, 1, 3, CHUNK_BYTES // 8):
        (served / NAME).write_bytes(lines(*range(count)))
        copy = fetch(url, tmp_path / "copies") / NAME
        assert copy.read_bytes() == (served / NAME).read_bytes()


def spoil_nothing(_: Path, __: Path) -> None:
    """The writer's last write failed, was cut off, and another came."""


def tear_the_copy(_: Path, copy: Path) -> None:
    copy.write_bytes(copy.read_bytes()[:-4])


def make_the_copy_another(_: Path, copy: Path) -> None:
    copy.write_bytes(lines(7, 8, 9))


def lengthen_the_copy(_: Path, copy: Path) -> None:
    copy.write_bytes(copy.read_bytes() + lines(*range(5000)))


@pytest.mark.parametrize("spoil", [spoil_nothing, tear_the_copy, make_the_copy_another, lengthen_the_copy])
def test_a_copy_that_is_not_the_segments_beginning_is_mended(
    served: Path, url: str, tmp_path: Path, spoil: Callable[[Path, Path], None]
) -> None:
    (served / NAME).write_bytes(lines(1, 2, 3))
    copy = fetch(url, tmp_path / "copies") / NAME
    spoil(served / NAME, copy)
    (served / NAME).write_bytes(lines(1, 2, 4, 5))
    fetch(url, tmp_path / "copies")
    assert copy.read_bytes() == lines(1, 2, 4, 5)


def test_segments_that_the_server_deleted_stay_in_the_copy(served: Path, url: str, tmp_path: Path) -> None:
    (served / NAME).write_bytes(lines(1))
    folder = fetch(url, tmp_path / "copies")
    (served / NAME).unlink()
    fetch(url, tmp_path / "copies")
    assert (folder / NAME).read_bytes() == lines(1)


def test_nothing_but_segments_is_served(served: Path, url: str, tmp_path: Path) -> None:
    (served / "secret.txt").write_text("no")
    assert list(fetch(url, tmp_path / "copies").iterdir()) == []
    with pytest.raises(JournalUnreachable, match="404"):
        fetch(f"{url}/secret.txt", tmp_path / "copies")


def test_a_wrong_address_says_what_to_give(url: str, tmp_path: Path) -> None:
    with pytest.raises(JournalUnreachable, match="is a journal kept there"):
        fetch(url.replace("/journal", "/metrics"), tmp_path)
    with pytest.raises(JournalUnreachable, match="cannot be read"):
        fetch("http://127.0.0.1:1/journal", tmp_path)
