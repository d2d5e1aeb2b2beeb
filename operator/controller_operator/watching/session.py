"""The HTTP session of kopf. It has the operator's login, and `WatchRequests` observes it."""

from typing import Final

import aiohttp
import kopf
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse
from kubernetes.aio.client.configuration import Configuration

from controller_operator.kubernetes.api_client import api_client
from controller_operator.kubernetes.api_server import NoKubernetes, load_configuration

_AGAIN_S: Final = 5.0
_UNAUTHORIZED: Final = 401


async def open_session(trace: aiohttp.TraceConfig) -> kopf.AiohttpSession:
    """Log in by the present service account or kubeconfig. Raises `kopf.TemporaryError`."""
    try:
        client = api_client(await load_configuration())
    except (NoKubernetes, OSError) as error:
        raise kopf.TemporaryError(str(error), delay=_AGAIN_S) from error
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=client.rest_client.ssl_context),
        proxy=client.configuration.proxy,
        trace_configs=[trace],
        middlewares=[_Authorizing(client.configuration)],
    )
    return kopf.AiohttpSession(server=client.configuration.host, aiohttp_session=session)


class _Authorizing:
    """Adds the present token to each request, because a pod's token is replaced, and a new one after a 401.

    Otherwise kopf would log in again, close this session, and end every watch that is open over it."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    async def __call__(self, request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
        await self._authorize(request)
        response = await send(request)
        if response.status != _UNAUTHORIZED:
            return response
        try:
            self._configuration = await load_configuration()
        except (NoKubernetes, OSError):
            return response  # kopf logs in again, and gets the reason of the failure
        response.release()
        await self._authorize(request)
        return await send(request)

    async def _authorize(self, request: ClientRequest) -> None:
        if token := (await self._configuration.auth_settings()).get("BearerToken"):
            request.headers["Authorization"] = token["value"] or ""
