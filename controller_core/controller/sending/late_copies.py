"""Copies of requests that a dead connection left behind: they come too late to do harm, because a later epoch was seen.

A link that breaks, or times out, after a request was written leaves a copy of it on its way: in a buffer, or in the queue
of a broker that hangs. The request is sent again on another connection, and others follow; the copy may be handled after
all of these, at any time while the broker lives. Leader epochs fence most copies (KIP-570), but not these:

- A StopReplica for the deletion of a topic has none (-2, by which its remote log goes too), nor has one for the log of a
  former topic (-1); and the epochs of a topic that is created again begin at 0. The copy would delete, or stop, a replica
  that was added since.
- A LeaderAndIsr finds none to compare with where the replica was deleted since. The copy would bring back a log that is
  nobody's, on which the next topic of that name stumbles.

Waiting is no remedy, as nothing bounds the delay. But a broker refuses a request of an older controller epoch than the
largest that it has seen, and looks at that within the lock in which it applies one. So what such a copy must not come after
is sent under a later epoch than the copy has: a LeaderAndIsr after a StopReplica of unknown outcome, and a deletion after
a LeaderAndIsr of unknown outcome. For this the controller raises `/controller_epoch` in the middle of its term
(`term.epoch_raise`), at most once for a lost answer, and seldom: who dies or starts anew meanwhile
has nothing on its way, and another broker epoch.

Kafka's controller has no such guard. An UpdateMetadata is compared with nothing that the broker knows: a late copy of one
shows clients a former leader until the next change, here as with Kafka.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from controller_core.controller.loop.events import EpochOutdated
from controller_core.model.ids import BrokerEpoch, ControllerEpoch
from controller_core.wire.codecs.entries import deleted_by
from controller_core.wire.messages import ControlRequest, LeaderAndIsrRequest, StopReplicaRequest

_NONE: Final = ControllerEpoch(-1)


@dataclass(slots=True)
class LateCopies:
    """What may still arrive at one broker in one life of it: the largest epochs of requests of unknown outcome."""

    broker_epoch: BrokerEpoch
    _leader_and_isr: ControllerEpoch = _NONE
    _stop_replica: ControllerEpoch = _NONE
    _sent: ControllerEpoch = _NONE
    """The largest that the broker was sent anything under: it takes nothing under a smaller one."""

    def epoch_for(self, request: ControlRequest) -> ControllerEpoch:
        """The epoch that a request must be sent under, at the least its own."""
        match request:
            case LeaderAndIsrRequest():
                after = self._stop_replica
            case StopReplicaRequest() if self._leader_and_isr >= request.controller_epoch and deleted_by(request):
                after = self._leader_and_isr
            case _:
                after = _NONE
        return max(request.controller_epoch, self._sent, ControllerEpoch(after + 1))

    def on_sent(self, request: ControlRequest) -> None:
        self._sent = request.controller_epoch

    def on_unanswered(self, request: ControlRequest) -> None:
        """The request may have been written, and whether the broker has handled it is unknown."""
        match request:
            case LeaderAndIsrRequest():
                self._leader_and_isr = request.controller_epoch
            case StopReplicaRequest():
                self._stop_replica = request.controller_epoch


class PresentEpoch:
    """The controller's epoch as it is now, for those who may have to wait for a later one."""

    def __init__(self, epoch: ControllerEpoch, ask: Callable[[EpochOutdated], None]) -> None:
        self._epoch = epoch
        self._ask = ask
        self._raised = asyncio.Event()

    def raise_to(self, epoch: ControllerEpoch) -> None:
        self._epoch = epoch
        self._raised.set()

    async def at_least(self, epoch: ControllerEpoch) -> None:
        """Returns when the epoch is as late as that, and asks for it where it is not."""
        while self._epoch < epoch:
            self._raised.clear()
            self._ask(EpochOutdated(self._epoch))
            await self._raised.wait()
