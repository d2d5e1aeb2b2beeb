"""The HTTP session of kopf: logged in as the rest of the operator is, and looked at by `WatchRequests`."""

from typing import Final

import aiohttp
import kopf

from controller_operator.kubernetes.api_client import api_client
from controller_operator.kubernetes.api_server import NoKubernetes, load_configuration

_AGAIN_S: Final = 5.0


async def open_session(trace: aiohttp.TraceConfig) -> kopf.AiohttpSession:
    """Logs in by the pod's service account or the kubeconfig, as they are now. Raises `kopf.TemporaryError`."""
    try:
        configuration = await load_configuration()
        client = api_client(configuration)
        authorization = (await client.configuration.auth_settings()).get("BearerToken")
    except (NoKubernetes, OSError) as error:
        raise kopf.TemporaryError(str(error), delay=_AGAIN_S) from error
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=client.rest_client.ssl_context),
        headers={"Authorization": authorization["value"]} if authorization else {},
        proxy=client.configuration.proxy,
        trace_configs=[trace],
    )
    return kopf.AiohttpSession(server=client.configuration.host, aiohttp_session=session)
