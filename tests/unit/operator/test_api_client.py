"""A client of the API server knows the proxy of the environment, and does not ask the environment at each request."""

from collections.abc import Iterator

import kubernetes_asyncio.client as kubernetes
import pytest
from aiohttp import web

from controller_operator.kubernetes.api_client import api_client, proxy_for

API_SERVER = "https://api.example:6443"
PROXY = "http://user:secret@proxy.example:3128"


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "http_proxy", "no_proxy", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def configuration() -> Iterator[kubernetes.Configuration]:
    before = kubernetes.Configuration.get_default_copy()
    changed = kubernetes.Configuration(host=API_SERVER)
    kubernetes.Configuration.set_default(changed)
    yield changed
    kubernetes.Configuration.set_default(before)


@pytest.mark.parametrize(
    ("no_proxy", "found"), [("", PROXY), ("other.example", PROXY), (".example", None), ("api.example", None)]
)
def test_the_proxy_is_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, no_proxy: str, found: str | None
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert proxy_for(API_SERVER) == found


async def test_a_client_goes_by_the_proxy_of_the_kubeconfig_before_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, configuration: kubernetes.Configuration
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    async with api_client() as client:
        assert client.rest_client.proxy == PROXY
    configuration.proxy = "http://of-the-kubeconfig.example:1"
    kubernetes.Configuration.set_default(configuration)
    async with api_client(connections=0) as client:
        assert client.rest_client.proxy == "http://of-the-kubeconfig.example:1"
        assert client.rest_client.pool_manager.connector.limit == 0


async def test_a_netrc_is_nothing_to_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, configuration: kubernetes.Configuration
) -> None:
    """With a password for the same machine the library would refuse to send the token of the kubeconfig."""
    netrc = tmp_path_factory.mktemp("home") / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password of-something-else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    asked: list[str | None] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.headers.get("Authorization"))
        return web.json_response({"items": []})

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    configuration.host = f"http://127.0.0.1:{runner.addresses[0][1]}"
    configuration.api_key = {"BearerToken": "of-the-kubeconfig"}
    configuration.api_key_prefix = {"BearerToken": "Bearer"}
    kubernetes.Configuration.set_default(configuration)
    try:
        async with api_client() as client:
            await kubernetes.CustomObjectsApi(client).list_cluster_custom_object("kontroller.dev", "v1", "kafkatopics")
    finally:
        await runner.cleanup()
    assert asked == ["Bearer of-the-kubeconfig"]
