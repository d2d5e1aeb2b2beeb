"""Protection against late copies of requests that a dead connection left behind.

A link that breaks or times out may leave a copy of a written request in a buffer, or in the queue of a hanging broker.
The request is repeated on another connection and others follow, and the broker may handle the copy after all of them.
Leader epochs fence most copies (KIP-570). The exceptions are in `LateCopies`, with the remedy: a request that such a
copy must not follow is sent under a later controller epoch, so that the broker refuses the copy.

Kafka's controller has no such guard. UpdateMetadata is compared with nothing that the broker knows, so a late copy
shows clients a former leader until the next change, here as with Kafka.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from controller_core.controller.loop.events import EpochOutdated
from controller_core.model.ids import BrokerEpoch, ControllerEpoch
from controller_core.wire.codecs.entries import find_deleted
from controller_core.wire.messages import ControlRequest, LeaderAndIsrRequest, StopReplicaRequest

_NONE: Final = ControllerEpoch(-1)


@dataclass(slots=True)
class LateCopies:
    """The largest epochs of unanswered requests, whose copies may still reach one broker in its present life.

    Leader epochs do not fence these copies:

    - A StopReplica for the deletion of a topic has no leader epoch (-2, which also deletes its remote log), nor has one
      for the log of a former topic (-1). The epochs of a recreated topic begin at 0. The copy would delete or stop a
      replica that was added since.
    - A LeaderAndIsr finds no epoch to compare with if the replica was deleted since. The copy would create a log
      without an owner, and the next topic of that name would fail there.

    Waiting does not help, because nothing bounds the delay. But a broker refuses a controller epoch below the largest
    that it has seen, and checks that under the lock in which it applies requests. So a LeaderAndIsr after a StopReplica
    of unknown outcome is sent under a later epoch than the copy, and so is a deletion after a LeaderAndIsr of unknown
    outcome. The controller raises `/controller_epoch` for that in the middle of its term (`term.epoch_raise`). It
    happens seldom: at most once for a lost answer, and never for a broker that restarts, because a new broker epoch
    fences all old requests.
    """

    broker_epoch: BrokerEpoch
    _leader_and_isr: ControllerEpoch = _NONE
    _stop_replica: ControllerEpoch = _NONE
    _sent: ControllerEpoch = _NONE
    """The largest epoch under which the broker was sent anything. It accepts nothing under a smaller one."""

    def epoch_for(self, request: ControlRequest) -> ControllerEpoch:
        """Return the epoch under which a request must be sent: its own or a later one."""
        match request:
            case LeaderAndIsrRequest():
                after = self._stop_replica
            case StopReplicaRequest() if self._leader_and_isr >= request.controller_epoch and find_deleted(request):
                after = self._leader_and_isr
            case _:
                after = _NONE
        return max(request.controller_epoch, self._sent, ControllerEpoch(after + 1))

    def on_sent(self, request: ControlRequest) -> None:
        self._sent = request.controller_epoch

    def on_unanswered(self, request: ControlRequest) -> None:
        """Record a request that may have been written, and that the broker may or may not have handled."""
        match request:
            case LeaderAndIsrRequest():
                self._leader_and_isr = request.controller_epoch
            case StopReplicaRequest():
                self._stop_replica = request.controller_epoch


class PresentEpoch:
    """The controller's present epoch, for streams that may have to wait for a later one."""

    def __init__(self, epoch: ControllerEpoch, ask: Callable[[EpochOutdated], None]) -> None:
        self._epoch = epoch
        self._ask = ask
        self._raised = asyncio.Event()

    def raise_to(self, epoch: ControllerEpoch) -> None:
        self._epoch = epoch
        self._raised.set()

    async def wait_for(self, epoch: ControllerEpoch) -> None:
        """Wait until the epoch is at least this one, and ask for a raise if it is not."""
        while self._epoch < epoch:
            self._raised.clear()
            self._ask(EpochOutdated(self._epoch))
            await self._raised.wait()
