"""Controlled shutdown: a stopping broker asks the controller to move its leaderships first (seed 004, KIP-380).

Like a stock broker, it asks three times at most, with a pause between, and then stops in any case. Partitions that it
still leads get new leaders when its registration is gone.
"""

import asyncio
from typing import Final

import structlog
from kio.schema.errors import ErrorCode

from replica_broker.membership.controller_channel import ControllerChannel, NoController

log = structlog.get_logger()

TRIES: Final = 3
PAUSE_S: Final = 5.0


async def leave_in_order(channel: ControllerChannel, *, tries: int = TRIES, pause_s: float = PAUSE_S) -> bool:
    """Ask for a controlled shutdown. Return True if the broker leads no partition now."""
    for left in range(tries - 1, -1, -1):
        try:
            answer = await channel.request_controlled_shutdown()
        except NoController as error:
            log.warning("the controller does not answer the controlled shutdown", why=str(error), tries_left=left)
        else:
            if answer.error_code is ErrorCode.none and not answer.remaining_partitions:
                log.info("this broker leads no partitions now")
                return True
            log.warning(
                "the controller cannot move all leaders",
                error=answer.error_code.name,
                remaining=[f"{one.topic_name}-{one.partition_index}" for one in answer.remaining_partitions][:20],
                tries_left=left,
            )
        if left:
            await asyncio.sleep(pause_s)
    log.warning("stopping without a controlled shutdown: its partitions get new leaders after it is gone")
    return False
