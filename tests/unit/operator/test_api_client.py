"""A client of the API server knows the proxy of the environment, and does not ask the environment at each request."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

from controller_operator.kubernetes.api_client import ApiRequests, api_client, find_proxy
from controller_operator.kubernetes.object_api import (
    ApiForbidden,
    ApiRefused,
    ApiUnavailable,
    ObjectChanged,
    ObjectGone,
    VersionExpired,
)

API_SERVER = "https://api.example:6443"
PROXY = "http://user:secret@proxy.example:3128"


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "http_proxy", "no_proxy", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


@asynccontextmanager
async def serve(answer: web.Response) -> AsyncIterator[tuple[Configuration, list[web.Request]]]:
    """Run an API server that gives one answer; yield the configuration of its client, and its requests."""
    asked: list[web.Request] = []

    async def respond(request: web.Request) -> web.Response:
        await request.read()
        asked.append(request)
        return answer

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", respond)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield Configuration(host=f"http://127.0.0.1:{runner.addresses[0][1]}"), asked
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("no_proxy", "found"), [("", PROXY), ("other.example", PROXY), (".example", None), ("api.example", None)]
)
def test_the_proxy_is_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, no_proxy: str, found: str | None
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert find_proxy(API_SERVER) == found


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "[::1]"])
def test_an_api_server_on_this_machine_is_asked_without_a_proxy(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    assert find_proxy(f"https://{host}:6443") is None
    assert find_proxy("https://10.0.0.1:6443") == PROXY


async def test_a_client_goes_by_the_proxy_of_the_kubeconfig_before_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    configuration = Configuration(host=API_SERVER)
    async with api_client(configuration) as client:
        assert client.rest_client.proxy == PROXY
    configuration.proxy = "http://of-the-kubeconfig.example:1"
    async with api_client(configuration) as client:
        assert client.rest_client.proxy == "http://of-the-kubeconfig.example:1"


async def test_a_netrc_is_nothing_to_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """If there is a password for the same machine, the library would refuse to send the token of the kubeconfig."""
    netrc = tmp_path_factory.mktemp("home") / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password of-something-else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    async with serve(web.json_response({"items": []})) as (configuration, asked):
        configuration.api_key = {"BearerToken": "of-the-kubeconfig"}
        configuration.api_key_prefix = {"BearerToken": "Bearer"}
        requests = ApiRequests(configuration)
        try:
            assert await requests.ask("GET", "/apis", query={"limit": "2"}) == {"items": []}
        finally:
            await requests.close()
    (request,) = asked
    assert request.headers["Authorization"] == "Bearer of-the-kubeconfig"
    assert request.path_qs == "/apis?limit=2"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, ApiRefused),
        (401, ApiForbidden),
        (403, ApiForbidden),
        (404, ObjectGone),
        (409, ObjectChanged),
        (410, VersionExpired),
        (422, ApiRefused),
        (429, ApiUnavailable),
        (503, ApiUnavailable),
    ],
)
async def test_an_error_of_the_api_server_says_what_may_come_of_it(status: int, error: type[Exception]) -> None:
    async with serve(web.Response(status=status, text="the reason")) as (configuration, _):
        requests = ApiRequests(configuration)
        try:
            with pytest.raises(error, match="the reason"):
                await requests.ask("PATCH", "/apis", body={"a": 1})
        finally:
            await requests.close()


async def test_an_api_server_that_is_not_there_is_unavailable() -> None:
    async with serve(web.Response(text="no JSON")) as (configuration, _):
        requests = ApiRequests(configuration)
        with pytest.raises(ApiUnavailable, match="no JSON"):
            await requests.ask("GET", "/apis")
    try:
        with pytest.raises(ApiUnavailable):
            await requests.ask("GET", "/apis")
    finally:
        await requests.close()
