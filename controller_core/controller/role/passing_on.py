"""The orderly end of a process: a hot standby, if there is one, takes the role from it.

If `/controller` were deleted instead, a Kafka broker might be faster, and the cluster would have three controllers in a
row. So the heir is asked by a request (`requested_role`) and takes the role in one transaction. The term is over by
then, and this process writes nothing but the request.
"""

import asyncio
from typing import Final

import structlog

from controller_core.controller.loop.clock import Clock
from controller_core.controller.role.requested_role import NO_MORE, make_process_request
from controller_core.model.ids import BrokerId
from controller_core.zk import paths
from controller_core.zk.fenced import FencedWriter
from controller_core.zk.session import ZkSession

log = structlog.get_logger()

PASS_ON_MS: Final = 2000
"""The time that a process waits for its heir before it leaves the role to anybody."""


async def pass_on(heir: BrokerId, zk: ZkSession, writer: FencedWriter, clock: Clock) -> bool:
    """Ask another process to take the role. Return False if it did not in time. Raises `ZkError`, `Fenced`."""
    log.info("passing the role on", to=heir)
    if (await writer.write({paths.ROLE_REQUEST: [make_process_request(heir)]})).failed:
        return False
    if await _is_taken(zk, clock):
        return True
    await writer.write({paths.ROLE_REQUEST: [NO_MORE]})
    return False


async def _is_taken(zk: ZkSession, clock: Clock) -> bool:
    """Return True as soon as `/controller` is no longer ours; False if the heir took too long."""
    changed = asyncio.Event()
    (node,) = await zk.read_watched([paths.CONTROLLER], lambda _: lambda _: changed.set())
    if node is not None and node.ephemeral_owner == zk.session_id:
        waits = [asyncio.create_task(changed.wait()), asyncio.create_task(clock.sleep_ms(PASS_ON_MS))]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        (node,) = await zk.read_many([paths.CONTROLLER])
    return node is None or node.ephemeral_owner != zk.session_id
