"""Questions to a process on this machine do not depend on the proxies of the environment."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from devcluster.running.scraping import scrape


class Metrics(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'ready{of="a"} 1\nother 2\n')

    def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002


@pytest.fixture
def port() -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), Metrics) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy"])
def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch, port: int, name: str) -> None:
    for other in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, "http://127.0.0.1:1")  # nobody listens there
    assert scrape(port, 'ready{of="a"}') == 1
    assert scrape(port, "none") is None
