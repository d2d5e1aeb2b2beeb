"""Clients of the API server that ask the environment once.

The library has aiohttp look for a proxy in the environment and for a password in `~/.netrc` before every request, each on
a thread. Over thousands of requests that was a fifth of the operator's processor time, and two threads to wait for in each
of them. Here the proxy is found when a client is made. A `.netrc` is not read, nor does kubectl read one: what it said of
the API server would only be in the way of the credentials of the kubeconfig.
"""

from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import kubernetes_asyncio.client as kubernetes
from aiohttp import ClientSession

_READ_BUFFER_BYTES: Final = 1 << 21
"""An event of a watch is a line, and as long as its object."""


def api_client(*, connections: int | None = None) -> kubernetes.ApiClient:
    """A client by the configuration that was loaded, with so many connections; 0: any number; None: the library's."""
    configuration: Any = kubernetes.Configuration.get_default_copy()
    configuration.proxy = configuration.proxy or proxy_for(configuration.host)
    if connections is not None:
        configuration.connection_pool_maxsize = connections
    client = kubernetes.ApiClient(configuration)
    rest: Any = client.rest_client
    connector = rest.pool_manager.connector
    rest.pool_manager.detach()
    rest.pool_manager = ClientSession(connector=connector, read_bufsize=_READ_BUFFER_BYTES)
    return client


def proxy_for(address: str) -> str | None:
    """The proxy that the environment (`HTTPS_PROXY`, `NO_PROXY`, ...) has for an address; None where it has none."""
    url = urlsplit(address)
    return None if proxy_bypass(url.hostname or "") else getproxies().get(url.scheme)
