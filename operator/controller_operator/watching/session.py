"""The HTTP session of kopf: logged in as the rest of the operator is, and looked at by `WatchRequests`.

A token of a service account is replaced while the operator runs. A request that is refused with 401 is sent again with the
credentials as they are then. kopf would log in again, close this session, and end every watch that is open over it.
"""

from typing import Final

import aiohttp
import kopf
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse
from kubernetes.aio.client.configuration import Configuration

from controller_operator.kubernetes.api_client import api_client
from controller_operator.kubernetes.api_server import NoKubernetes, load_configuration

_AGAIN_S: Final = 5.0
_AUTHORIZATION: Final = "Authorization"
_UNAUTHORIZED: Final = 401


async def open_session(trace: aiohttp.TraceConfig) -> kopf.AiohttpSession:
    """Logs in by the pod's service account or the kubeconfig, as they are now. Raises `kopf.TemporaryError`."""
    try:
        configuration = await load_configuration()
        client = api_client(configuration)
        headers = await _headers(client.configuration)
    except (NoKubernetes, OSError) as error:
        raise kopf.TemporaryError(str(error), delay=_AGAIN_S) from error
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=client.rest_client.ssl_context),
        headers=headers,
        proxy=client.configuration.proxy,
        trace_configs=[trace],
        middlewares=[_renew_credentials],
    )
    return kopf.AiohttpSession(server=client.configuration.host, aiohttp_session=session)


async def _renew_credentials(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
    """Sends a request again, once, if its credentials are not valid any more."""
    response = await send(request)
    if response.status != _UNAUTHORIZED:
        return response
    try:
        headers = await _headers(await load_configuration())
    except (NoKubernetes, OSError):
        return response  # kopf logs in again, and hears why that fails
    response.release()
    request.headers.update(headers)
    request.session.headers.update(headers)
    return await send(request)


async def _headers(configuration: Configuration) -> dict[str, str]:
    authorization = (await configuration.auth_settings()).get("BearerToken")
    return {_AUTHORIZATION: str(authorization["value"])} if authorization else {}
