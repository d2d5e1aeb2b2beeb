"""Checks that a broker is ready. Asks the broker itself, and the controller only if a replica is not in sync.

Brokers are usually ready, so the controller is rarely asked. If it does not answer, out-of-sync replicas count as if no
reassignment added them."""

import asyncio
import math
import os
import time
from pathlib import Path
from typing import Final

from kio.schema.metadata.v11 import MetadataResponse

from controller_core.client.errors import AdminError
from controller_core.client.reassigning.reassignments import list_reassignments
from controller_core.client.snapshot import read_snapshot
from controller_core.client.transport.request_client import ClusterClient
from controller_core.model.draining.broker_readiness import explain_hidden, explain_not_ready, find_behind
from controller_core.model.ids import BrokerId
from controller_core.wire.requests.metadata import ALL_TOPICS

_FIRST_PROCESS: Final = Path("/proc/1/stat")
_START_TIME: Final = 19
"""Its place behind the name of the process, in clock ticks since the boot (proc(5))."""


async def look_at_broker(
    client: ClusterClient, broker: BrokerId, timeout_s: float, hidden_s: float = 0.0
) -> str | None:
    """Return the reason why the broker is not ready, or None. The client must use the broker's own address.

    `hidden_s`: the time for which clients may still have the address of its former pod."""
    until = asyncio.get_running_loop().time() + timeout_s
    try:
        snapshot = read_snapshot(await client.ask_any(ALL_TOPICS, MetadataResponse))
    except AdminError as error:
        return str(error)
    why = explain_not_ready(snapshot, broker)
    if why is None:
        return explain_hidden(snapshot, broker, hidden_s)
    if not find_behind(snapshot, broker):
        return why
    try:
        async with asyncio.timeout_at(until):
            ongoing = await list_reassignments(client)
    except (AdminError, TimeoutError) as error:
        trouble = str(error) or f"the controller did not answer in {timeout_s:g} s"
        return f"{why}; whether a reassignment adds them is not known: {trouble}"
    arriving = frozenset(tp for tp, each in ongoing.items() if broker in each.adding)
    return explain_not_ready(snapshot, broker, arriving) or explain_hidden(snapshot, broker, hidden_s)


def measure_age_s(first_process: Path = _FIRST_PROCESS) -> float:
    """Return the seconds since this container started, or else this machine; infinite if the system does not tell.

    A container that restarts keeps its pod's address, so its age may be less than that of the address."""
    try:
        started = int(first_process.read_text().rpartition(")")[2].split()[_START_TIME])
    except (OSError, ValueError, IndexError):
        return math.inf
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")
