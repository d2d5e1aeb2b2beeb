"""Checks that a broker is ready. Asks the broker itself, and the controller only if a replica is not in sync.

Brokers are usually ready, so the controller is rarely asked. If it does not answer, out-of-sync replicas count as if no
reassignment added them."""

import asyncio

from kio.schema.metadata.v11 import MetadataResponse

from controller_core.client.errors import AdminError
from controller_core.client.reassigning.reassignments import list_reassignments
from controller_core.client.snapshot import read_snapshot
from controller_core.client.transport.request_client import ClusterClient
from controller_core.model.draining.broker_readiness import explain_not_ready, find_behind
from controller_core.model.ids import BrokerId
from controller_core.wire.requests.metadata import ALL_TOPICS


async def look_at_broker(client: ClusterClient, broker: BrokerId, timeout_s: float) -> str | None:
    """Return the reason why the broker is not ready, or None. The client must use the broker's own address."""
    until = asyncio.get_running_loop().time() + timeout_s
    try:
        snapshot = read_snapshot(await client.ask_any(ALL_TOPICS, MetadataResponse))
    except AdminError as error:
        return str(error)
    why = explain_not_ready(snapshot, broker)
    if why is None or not find_behind(snapshot, broker):
        return why
    try:
        async with asyncio.timeout_at(until):
            ongoing = await list_reassignments(client)
    except (AdminError, TimeoutError) as error:
        trouble = str(error) or f"the controller did not answer in {timeout_s:g} s"
        return f"{why}; whether a reassignment adds them is not known: {trouble}"
    return explain_not_ready(snapshot, broker, frozenset(tp for tp, each in ongoing.items() if broker in each.adding))
