"""A served journal is copied over HTTP, and the copy follows it even if either side restarts."""

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from controller_core.process.journal_http import CHUNK_BYTES, make_journal_routes
from controller_core.security.token_file import TokenFile
from devcluster.running.scraping import open_locally
from kontroller.history.sources.journal_copies import fetch
from kontroller.history.sources.journal_http import JournalUnreadable
from kontroller.history.sources.journal_tokens import JournalTokens

NAME = "0000000001-000000000000000.jsonl"


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """The directory of a controller's journal."""
    directory = tmp_path / "served"
    directory.mkdir()
    return directory


@contextmanager
def serve(*routes: web.RouteDef, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The address of routes on a loop of their own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def start() -> tuple[web.AppRunner, int]:
        application = web.Application()
        application.add_routes(routes)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        return runner, runner.addresses[0][1]

    runner, port = asyncio.run_coroutine_threadsafe(start(), loop).result()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    finally:  # otherwise the thread keeps the process alive after a failed test
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture
def url(served: Path) -> Iterator[str]:
    """Serve the journal with the production routes; yield its address."""
    with serve(*make_journal_routes(served)) as address:
        yield f"{address}/journal"


def lines(*numbers: int) -> bytes:
    return b"".join(b'{"seq":%d}\n' % number for number in numbers)


def test_a_copy_is_the_same_bytes_and_grows_with_its_segment(served: Path, url: str, tmp_path: Path) -> None:
    for count in (1, 1, 3, CHUNK_BYTES // 8):
        (served / NAME).write_bytes(lines(*range(count)))
        copy = fetch(url, tmp_path / "copies").folder / NAME
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
    copy = fetch(url, tmp_path / "copies").folder / NAME
    spoil(served / NAME, copy)
    (served / NAME).write_bytes(lines(1, 2, 4, 5))
    fetch(url, tmp_path / "copies")
    assert copy.read_bytes() == lines(1, 2, 4, 5)


def test_segments_that_the_server_deleted_stay_in_the_copy(served: Path, url: str, tmp_path: Path) -> None:
    (served / NAME).write_bytes(lines(1))
    folder = fetch(url, tmp_path / "copies").folder
    (served / NAME).unlink()
    fetch(url, tmp_path / "copies")
    assert (folder / NAME).read_bytes() == lines(1)


def test_nothing_but_segments_is_served(served: Path, url: str, tmp_path: Path) -> None:
    (served / "secret.txt").write_text("no")
    assert list(fetch(url, tmp_path / "copies").folder.iterdir()) == []
    with pytest.raises(JournalUnreadable, match="404"):
        fetch(f"{url}/secret.txt", tmp_path / "copies")


def test_a_wrong_address_says_what_to_give(url: str, tmp_path: Path) -> None:
    with pytest.raises(JournalUnreadable, match="is a journal kept there"):
        fetch(url.replace("/journal", "/metrics"), tmp_path)
    with pytest.raises(JournalUnreadable, match="cannot be read"):
        fetch("http://127.0.0.1:1/journal", tmp_path)


TOKEN, OTHER = "a-token-of-the-tests", "another-one-of-the-tests"


def file_of(folder: Path, name: str, *tokens: str) -> Path:
    path = folder / name
    path.write_text("\n".join(tokens))
    return path


def test_a_journal_with_a_token_is_for_those_who_show_it(served: Path, tmp_path: Path) -> None:
    (served / NAME).write_bytes(lines(1, 2))
    given, wrong = file_of(tmp_path, "given", TOKEN), file_of(tmp_path, "wrong", OTHER)
    with serve(*make_journal_routes(served, TokenFile(path=given))) as address:
        url = f"{address}/journal"

        def fetch_bytes(*options: str) -> bytes:
            return (fetch(url, tmp_path / "copies", JournalTokens.parse(options, [url])).folder / NAME).read_bytes()

        for options in ((), (str(wrong),), (f"{url}={wrong}", str(given))):
            with pytest.raises(JournalUnreadable, match=r"answers 401 Unauthorized: .* --journal-token-file") as error:
                fetch_bytes(*options)
            assert TOKEN not in str(error.value)
            assert OTHER not in str(error.value)
        for segment in ("", f"/{NAME}"):
            with pytest.raises(HTTPError) as refused:
                open_locally(f"{url}{segment}")
            assert (refused.value.code, refused.value.headers["WWW-Authenticate"]) == (401, "Bearer")
            assert "requires its token" in refused.value.read().decode()
            refused.value.close()
        assert fetch_bytes(str(given)) == fetch_bytes(f"{url}/={given}") == lines(1, 2)
        (served / NAME).write_bytes(lines(1, 2, 3))
        file_of(tmp_path, "given", OTHER, TOKEN)
        assert fetch_bytes(str(wrong)) == lines(1, 2, 3)


def test_a_token_that_cannot_be_read_lets_nobody_in_and_is_logged_once(served: Path, tmp_path: Path) -> None:
    given, shown = file_of(tmp_path, "given", TOKEN), file_of(tmp_path, "shown", TOKEN)
    with serve(*make_journal_routes(served, TokenFile(path=given))) as address, capture_logs() as logged:
        tokens = JournalTokens.parse([str(shown)], [])
        fetch(f"{address}/journal", tmp_path / "copies", tokens)
        given.unlink()
        for _ in range(2):
            with pytest.raises(JournalUnreadable, match="503"):
                fetch(f"{address}/journal", tmp_path / "copies", tokens)
        assert [line["log_level"] for line in logged] == ["warning"]
        file_of(tmp_path, "given", TOKEN)
        fetch(f"{address}/journal", tmp_path / "copies", tokens)
        shown.unlink()
        with pytest.raises(JournalUnreadable, match=r"cannot be read: .*shown cannot be read"):
            fetch(f"{address}/journal", tmp_path / "copies", tokens)


def test_a_redirect_is_not_followed_and_nothing_of_it_is_stored(tmp_path: Path) -> None:
    asked: list[str | None] = []

    async def lead(request: web.Request) -> web.Response:
        asked.append(request.headers.get("Authorization"))
        raise web.HTTPFound("http://127.0.0.1:1/journal")

    tokens = JournalTokens.parse([str(file_of(tmp_path, "given", TOKEN))], [])
    refused = pytest.raises(JournalUnreadable, match="answers 302 and names another address, which is not followed")
    with serve(web.get("/journal", lead)) as address, refused:
        fetch(f"{address}/journal", tmp_path / "copies", tokens)
    assert asked == [f"Bearer {TOKEN}"]
    assert not (tmp_path / "copies").exists()


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("http://other:9404/journal=FILE", "http://other:9404/journal is not one of the journals"),
        ("http://here:9404/journal=", "names no file"),
        ("nowhere", "nowhere cannot be read"),
    ],
)
def test_a_token_that_nobody_could_be_shown_is_refused_at_the_start(tmp_path: Path, option: str, said: str) -> None:
    given = option.replace("FILE", str(file_of(tmp_path, "given", TOKEN)))
    with pytest.raises(ValueError, match=said):
        JournalTokens.parse([given], ["http://here:9404/journal", "/a/folder"])
