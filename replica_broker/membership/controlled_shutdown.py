"""A broker that is to stop asks the controller to move what it leads first (seed 004, KIP-380).

It does so as stock brokers do: three times at most, with a pause between, and stops then whatever was answered: whatever it
still leads gets a new leader when its registration is gone.
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
    """Whether the broker leads nothing any more."""
    for left in range(tries - 1, -1, -1):
        try:
            answer = await channel.controlled_shutdown()
        except NoController as error:
            log.warning("the controller does not answer to a controlled shutdown", why=str(error), tries_left=left)
        else:
            if answer.error_code is ErrorCode.none and not answer.remaining_partitions:
                log.info("nothing is led here any more")
                return True
            log.warning(
                "the controller cannot move all leaders",
                error=answer.error_code.name,
                remaining=[f"{one.topic_name}-{one.partition_index}" for one in answer.remaining_partitions][:20],
                tries_left=left,
            )
        if left:
            await asyncio.sleep(pause_s)
    log.warning("stopping without a controlled shutdown: what is led here gets other leaders when this broker is gone")
    return False
