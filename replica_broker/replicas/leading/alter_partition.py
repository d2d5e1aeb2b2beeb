"""ISR writes through the controller (AlterPartition, KIP-497). One request is in flight; it has all waiting partitions.

The return of a broker changes hundreds of ISRs at once, which share a request. As in Kafka's leaders, some error codes
are final and the others are retried.
"""

import asyncio
from collections.abc import Iterable
from itertools import groupby
from typing import Final, NamedTuple

import structlog

from controller_core.model.ids import TopicId, TopicPartition
from controller_core.supervision import start_task
from controller_core.wire.messages import AlterPartitionResponse, ErrorCode
from controller_core.wire.messages.alter_partition import AskedIsr, AskedTopic, Outcome
from replica_broker.replicas.seams import (
    AlterPartitionChannel,
    IsrRefused,
    IsrToWrite,
    IsrWriteUncertain,
    IsrWritten,
)

log = structlog.get_logger()

_FINAL: Final = frozenset(
    {
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unknown_topic_id,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.invalid_update_version,
        ErrorCode.invalid_request,
        ErrorCode.new_leader_elected,
        ErrorCode.ineligible_replica,
        ErrorCode.operation_not_attempted,
    }
)


class _Waiting(NamedTuple):
    isr: IsrToWrite
    answered: "asyncio.Future[IsrWritten | IsrRefused]"


class AlterPartitionWriter:
    """An `IsrWriter` that asks the controller."""

    def __init__(self, channel: AlterPartitionChannel) -> None:
        self._channel = channel
        self._waiting: dict[TopicPartition, _Waiting] = {}
        self._task: asyncio.Task[None] | None = None

    async def write(self, isr: IsrToWrite) -> IsrWritten | IsrRefused:
        """Ask the controller to write an ISR. See `IsrWriter`."""
        if isr.topic_id is None:
            log.error(
                "an ISR cannot be changed, because the controller has sent no topic id: beside brokers of "
                "inter-broker protocol 2.6, start with --isr-writes zookeeper",
                partition=str(isr.topic_partition),
            )
            return IsrRefused(error_code=ErrorCode.unknown_topic_id)  # version 3 has topic ids only
        earlier = self._waiting.pop(isr.topic_partition, None)
        if earlier is not None:
            _fail(earlier, "a later ISR replaces it")
        waiting = _Waiting(isr, asyncio.get_running_loop().create_future())
        self._waiting[isr.topic_partition] = waiting
        if self._task is None or self._task.done():
            self._task = start_task(self._send_all(), name="ask the controller for ISRs")
        return await waiting.answered

    async def _send_all(self) -> None:
        while self._waiting:
            asked, self._waiting = list(self._waiting.values()), {}
            try:
                response = await self._channel.alter_partition(_topics(asked))
                _answer(asked, response)
            except IsrWriteUncertain as error:
                for waiting in asked:
                    _fail(waiting, str(error))
            finally:
                for waiting in asked:
                    _fail(waiting, "the controller was not asked, or did not answer for this partition")


def _topics(asked: Iterable[_Waiting]) -> tuple[AskedTopic, ...]:
    def topic_id(waiting: _Waiting) -> TopicId:
        assert waiting.isr.topic_id is not None, "checked before"
        return waiting.isr.topic_id

    return tuple(
        AskedTopic(
            each_id,
            [
                AskedIsr(
                    isr.topic_partition.partition,
                    isr.leader_epoch,
                    isr.isr,
                    int(isr.recovery_state),
                    isr.partition_epoch,
                )
                for isr, _ in of_topic
            ],
        )
        for each_id, of_topic in groupby(sorted(asked, key=topic_id), key=topic_id)
    )


def _answer(asked: Iterable[_Waiting], response: AlterPartitionResponse) -> None:
    if response.error_code is not ErrorCode.none:
        raise IsrWriteUncertain(f"the controller answered {response.error_code.name}")
    outcomes = {
        (topic.topic_id, partition.partition): partition.outcome
        for topic in response.topics
        for partition in topic.partitions
    }
    for waiting in asked:
        outcome = outcomes.get((waiting.isr.topic_id, waiting.isr.topic_partition.partition))
        if outcome is not None and not waiting.answered.done():
            _resolve(waiting, outcome)


def _resolve(waiting: _Waiting, outcome: Outcome) -> None:
    if not isinstance(outcome, ErrorCode):
        waiting.answered.set_result(
            IsrWritten(
                leader_epoch=outcome.leader_and_isr.leader_epoch,
                partition_epoch=outcome.partition_epoch,
                isr=outcome.leader_and_isr.isr,
                recovery_state=outcome.leader_and_isr.leader_recovery_state,
            )
        )
    elif outcome in _FINAL:
        waiting.answered.set_result(IsrRefused(error_code=outcome))
    else:
        _fail(waiting, f"the controller answered {outcome.name}")


def _fail(waiting: _Waiting, why: str) -> None:
    if not waiting.answered.done():
        waiting.answered.set_exception(IsrWriteUncertain(why))
