"""A server that sends anything takes no more memory and disk than the caps allow, and spoils no other journal."""

import ssl
import subprocess
import tracemalloc
from itertools import count
from pathlib import Path

import pytest
from aiohttp import web
from yarl import URL

from controller_core.process.journal_http import make_journal_routes
from kontroller.history.sources.caps import Caps
from kontroller.history.sources.journal_copies import fetch, find_place
from kontroller.history.sources.journal_http import JournalUnreadable
from kontroller.history.sources.journal_tls import JournalTls, UnusableCertificates
from tests.unit.pipeline.test_journal_http import NAME, lines, serve

MIB = 1 << 20
OTHER = "0000000002-000000000000000.jsonl"


def offer(*segments: tuple[str, int]) -> web.RouteDef:
    """Return the route of an index that claims these segments."""

    async def index(_: web.Request) -> web.Response:
        return web.json_response({"segments": [{"name": name, "bytes": size} for name, size in segments]})

    return web.get("/journal", index)


async def send_endlessly(request: web.Request, begin: bytes = b"", encoding: str = "identity") -> web.StreamResponse:
    headers = {"Content-Encoding": encoding}
    response = web.StreamResponse(status=206 if "Range" in request.headers else 200, headers=headers)
    await response.prepare(request)
    await response.write(begin)
    while True:
        await response.write(b" " * MIB)


def test_an_endless_index_is_given_up_at_its_cap(tmp_path: Path) -> None:
    async def index(request: web.Request) -> web.StreamResponse:
        return await send_endlessly(request, b'{"segments": [')

    tracemalloc.start()
    try:
        too_long = pytest.raises(JournalUnreadable, match="lists its segments in more than 8,388,608 bytes")
        with serve(web.get("/journal", index)) as address, too_long:
            fetch(f"{address}/journal", tmp_path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 5 * Caps().index_bytes


def test_a_segment_gets_no_more_bytes_than_were_listed(tmp_path: Path) -> None:
    with serve(offer((NAME, 10)), web.get("/journal/{name}", send_endlessly)) as address:
        copied = fetch(f"{address}/journal", tmp_path)
    assert (copied.folder / NAME).stat().st_size == 10
    assert copied.problems == []


def test_a_compressed_answer_is_refused_unread(tmp_path: Path) -> None:
    async def index(request: web.Request) -> web.StreamResponse:
        return await send_endlessly(request, encoding="gzip")

    with serve(web.get("/journal", index)) as address, pytest.raises(JournalUnreadable, match="compresses its answers"):
        fetch(f"{address}/journal", tmp_path)


def test_a_segment_above_the_cap_is_named_and_the_others_are_copied(tmp_path: Path) -> None:
    data = lines(1, 2, 3)

    async def segment(request: web.Request) -> web.Response:
        part = data[request.http_range]
        return web.Response(body=part, status=206)

    segments = (NAME, 1 << 50), (OTHER, len(data))
    with serve(offer(*segments), web.get("/journal/{name}", segment)) as address:
        copied = fetch(f"{address}/journal", tmp_path)
    assert [path.name for path in copied.folder.iterdir()] == [OTHER]
    assert (copied.folder / OTHER).read_bytes() == data
    (problem,) = copied.problems
    assert f"/journal/{NAME} is left out: it has 1,125,899,906,842,624 bytes, more than --max-file-bytes" in problem


def test_a_journal_is_copied_up_to_its_cap(tmp_path: Path) -> None:
    async def segment(request: web.Request) -> web.Response:
        return web.Response(body=lines(*range(100))[request.http_range], status=206)

    caps = Caps(journal_bytes=1000)
    with serve(offer((NAME, 700), (OTHER, 700)), web.get("/journal/{name}", segment)) as address:
        copied = fetch(f"{address}/journal", tmp_path, caps=caps)
    assert [path.name for path in copied.folder.iterdir()] == [NAME]
    assert [f"left out from {OTHER} on: it has more than --max-journal-bytes 1000" in each for each in copied.problems]


def test_the_segments_before_one_that_fails_are_kept(tmp_path: Path) -> None:
    data = lines(1, 2)

    async def segment(request: web.Request) -> web.Response:
        if request.match_info["name"] == OTHER:
            raise web.HTTPInternalServerError
        return web.Response(body=data[request.http_range], status=206)

    with serve(offer((NAME, len(data)), (OTHER, 5)), web.get("/journal/{name}", segment)) as address:
        copied = fetch(f"{address}/journal", tmp_path)
    assert (copied.folder / NAME).read_bytes() == data
    assert [each for each in copied.problems if "answers 500" not in each] == []
    assert len(copied.problems) == 1


def test_a_slow_server_does_not_hold_up_the_others_for_hours(tmp_path: Path) -> None:
    data = lines(1, 2)

    async def segment(request: web.Request) -> web.Response:
        return web.Response(body=data[request.http_range], status=206)

    clock = count(step=1000)
    with serve(offer((NAME, len(data)), (OTHER, len(data))), web.get("/journal/{name}", segment)) as address:
        copied = fetch(f"{address}/journal", tmp_path, monotonic_s=lambda: next(clock))
        assert [path.name for path in copied.folder.iterdir()] == [NAME]
        assert [f"the next ingest fetches the rest from {OTHER} on" in each for each in copied.problems] == [True]
        assert fetch(f"{address}/journal", tmp_path).problems == []
    assert (copied.folder / OTHER).read_bytes() == data


@pytest.mark.parametrize("url", ["http://", "http:///journal", "http://[half/journal"])
def test_an_address_without_a_host_is_named(url: str, tmp_path: Path) -> None:
    with pytest.raises(JournalUnreadable, match="http://HOST:9404/journal"):
        fetch(url, tmp_path)


# The folders of copies


def place(url: str, below: Path, *, is_made: bool = True) -> str:
    folder = find_place(URL(url), below)
    if is_made:
        folder.mkdir(parents=True, exist_ok=True)
    return folder.name


def test_journals_of_one_host_and_port_have_a_folder_each(tmp_path: Path) -> None:
    urls = [f"http://h:9404/{path}" for path in ("journal", "a/journal", "b/journal", "journal?of=1")]
    places = [place(url, tmp_path) for url in urls]
    assert places[0] == "h-9404"
    assert len(set(places)) == 4
    assert [place(url, tmp_path) for url in reversed(urls)] == places[::-1]


def test_a_journal_keeps_its_folder_when_its_server_begins_to_use_tls(tmp_path: Path) -> None:
    assert place("http://h:9404/journal", tmp_path) == place("https://h:9404/journal/", tmp_path) == "h-9404"


@pytest.mark.parametrize(("url", "old"), [("http://h:9404/a/journal", "h-9404"), ("https://h/journal", "h-80")])
def test_a_folder_of_an_older_version_stays_with_its_journal(tmp_path: Path, url: str, old: str) -> None:
    (tmp_path / old).mkdir()
    assert [place(url, tmp_path) for _ in range(2)] == [old, old]
    others = [
        place(each, tmp_path) for each in ("http://h:9404/journal", "http://h/journal", "http://h:9404/b/journal")
    ]
    assert old not in others
    assert len(set(others)) == 3
    assert place(url, tmp_path) == old


# HTTPS


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    """A folder with a self-signed certificate of 127.0.0.1 and its key, in one file and in `ca.pem` without the key."""
    folder = tmp_path / "certificates"
    folder.mkdir()
    command = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=h"
    names = "-addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out ca.pem"
    subprocess.run(["openssl", *command.split(), *names.split()], cwd=folder, check=True, capture_output=True)
    (folder / "both.pem").write_text((folder / "key.pem").read_text() + (folder / "ca.pem").read_text())
    return folder


def test_a_journal_over_https_is_read_with_its_authority_and_a_client_certificate(
    tmp_path: Path, certificates: Path
) -> None:
    served = tmp_path / "served"
    served.mkdir()
    (served / NAME).write_bytes(lines(1, 2))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "both.pem")
    context.load_verify_locations(certificates / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    both, ca = certificates / "both.pem", certificates / "ca.pem"
    with serve(*make_journal_routes(served), tls=context) as address:
        url = f"{address}/journal"
        assert url.startswith("https://")
        for tls in (JournalTls(), JournalTls(authorities=ca), JournalTls(certificate=both)):
            with pytest.raises(JournalUnreadable, match="cannot be read: "):
                fetch(url, tmp_path / "copies", tls=tls)
        for tls in (
            JournalTls(authorities=ca, certificate=both),
            JournalTls(authorities=ca, certificate=ca, key=certificates / "key.pem"),
        ):
            copied = fetch(url, tmp_path / "copies", tls=tls)
            assert (copied.folder / NAME).read_bytes() == lines(1, 2)


def test_files_of_certificates_that_cannot_be_used_are_named(certificates: Path) -> None:
    nowhere, ca = certificates / "nowhere.pem", certificates / "ca.pem"
    with pytest.raises(UnusableCertificates, match=r"nowhere\.pem cannot be read: No such file"):
        JournalTls(authorities=nowhere).context()
    with pytest.raises(UnusableCertificates, match=r"ca\.pem cannot be used: .*Give PEM files"):
        JournalTls(certificate=ca).context()


def test_renewed_certificates_are_read_again(certificates: Path) -> None:
    tls = JournalTls(authorities=certificates / "ca.pem")
    first = tls.context()
    assert tls.context() is first
    renewed = certificates / "renewed.pem"
    renewed.write_text((certificates / "ca.pem").read_text())
    renewed.replace(certificates / "ca.pem")
    assert tls.context() is not first
