"""Looks whether a broker is ready: asks the broker itself, and the controller only where a replica is not in sync.

A broker is mostly ready, so mostly the controller is not asked. Where it does not answer, replicas that are not in sync
count as if no reassignment brought them.
"""

import asyncio

from kio.schema.metadata.v11 import MetadataResponse

from controller_core.model.draining.broker_readiness import explain_not_ready, find_behind
from controller_core.model.ids import BrokerId
from controller_core.wire.client.arrivals import ArrivalsRefused, ask_arrivals
from controller_core.wire.client.cluster_picture import EVERYTHING, read_picture
from controller_core.wire.client.request_client import ClusterClient, RequestError


async def look_at_broker(client: ClusterClient, broker: BrokerId, timeout_s: float) -> str | None:
    """Why the broker is not ready; None where it is. The client is for the broker's own address."""
    until = asyncio.get_running_loop().time() + timeout_s
    try:
        picture = read_picture(await client.ask_any(EVERYTHING, MetadataResponse))
    except RequestError as error:
        return str(error)
    why = explain_not_ready(picture, broker)
    if why is None or not find_behind(picture, broker):
        return why
    try:
        async with asyncio.timeout_at(until):
            arriving = await ask_arrivals(client, broker)
    except (RequestError, ArrivalsRefused, TimeoutError) as error:
        trouble = str(error) or f"the controller did not answer in {timeout_s:g} s"
        return f"{why}; whether a reassignment brings them here is not known: {trouble}"
    return explain_not_ready(picture, broker, arriving)
