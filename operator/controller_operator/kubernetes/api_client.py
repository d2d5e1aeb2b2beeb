"""Requests to the API server, by the client of the package `kubernetes`.

The client handles the kubeconfig, tokens and TLS. The generated classes beside it (`CoreV1Api`, ...) are not used: they
load models of all kinds, and check and copy every argument and every answer. `ApiRequests` sends and returns JSON.

The proxy is read from the environment once, when the client is made. Like kubectl, the client reads no `~/.netrc`,
because a password there would replace the credentials of the kubeconfig.
"""

import copy
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import orjson
from aiohttp import ClientError, ClientResponse, ClientTimeout
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration

from controller_core.security.trust import trust_each_certificate
from controller_operator.kubernetes.object_api import (
    ApiError,
    ApiForbidden,
    ApiRefused,
    ApiUnavailable,
    ObjectChanged,
    ObjectGone,
    VersionExpired,
)

_ANSWER_S: Final = 60.0
_CONNECT_S: Final = 30.0
MERGE_PATCH: Final = "application/merge-patch+json"


def api_client(configuration: Configuration) -> ApiClient:
    """Return a client that trusts the API server's authority as kubectl does."""
    own = copy.deepcopy(configuration)
    own.proxy = own.proxy or find_proxy(own.host)
    own.client_session_kwargs = {"trust_env": False}
    client = ApiClient(own)
    trust_each_certificate(client.rest_client.ssl_context)
    return client


def find_proxy(address: str) -> str | None:
    """Return the proxy for an address from the environment (`HTTPS_PROXY`, `NO_PROXY`, ...); None if there is none.

    As for kubectl, there is none for this machine.
    """
    url = urlsplit(address)
    host = url.hostname or ""
    return None if _is_this_machine(host) or proxy_bypass(host) else getproxies().get(url.scheme)


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class ApiRequests:
    """Sends requests to the API server. Every request has a time limit, and raises `ApiError`s."""

    def __init__(self, configuration: Configuration) -> None:
        self._client = api_client(configuration)

    async def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        timeout_s: float = _ANSWER_S,
    ) -> Any:
        """Return the answer to one request, as JSON."""
        timeout = ClientTimeout(total=timeout_s, sock_connect=_CONNECT_S)
        try:
            async with await self._send(method, path, query, body, content_type, timeout) as response:
                answer = await response.read()
        except (ClientError, TimeoutError, OSError) as error:
            raise ApiUnavailable(f"{type(error).__name__}: {error}") from error
        if not response.ok:
            said = answer[:500].decode(errors="replace")
            raise make_error(response.status, f"{response.status} {response.reason}: {said}")
        try:
            return orjson.loads(answer)
        except orjson.JSONDecodeError as error:
            raise ApiUnavailable(f"an answer that is no JSON: {answer[:100]!r}") from error

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Any,
        content_type: str,
        timeout: ClientTimeout,
    ) -> ClientResponse:
        parameters = await self._client.param_serialize(
            method,
            path,
            query_params=[*(query or {}).items()],
            header_params={"Accept": "application/json", "Content-Type": content_type},
            body=body,
            auth_settings=["BearerToken"],
        )
        answer: Any = await self._client.call_api(*parameters, _request_timeout=timeout)
        response: ClientResponse = answer.response
        return response


def make_error(status: int, message: str) -> ApiError:
    """Return the error that an HTTP status stands for."""
    if status == 404:
        return ObjectGone(message)
    if status == 410:
        return VersionExpired(message)
    if status == 409:
        return ObjectChanged(message)
    if status in (401, 403):
        return ApiForbidden(message)
    if status in (400, 422):
        return ApiRefused(message)
    return ApiUnavailable(message)
