"""Replicas with prepared answers, for tests of the handlers that ask them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from controller_core.model.ids import LeaderEpoch, TopicPartition
from replica_broker.log.appending import Appended
from replica_broker.log.producers.markers import EndOfTransaction
from replica_broker.log.producers.states import ProducerStates
from replica_broker.replicas.replicas import Replicas
from replica_broker.replicas.requests import Deleted, EpochEnd, Fetch, Fetched, ListedOffset


@dataclass(slots=True, kw_only=True)
class StandInReplicas:
    """Gives the prepared answers, and raises those that are errors."""

    appended: Mapping[TopicPartition, Appended | Exception] = field(default_factory=dict)
    acknowledged: asyncio.Event = field(default_factory=asyncio.Event)
    """Appends without a prepared answer wait for it."""
    has_appended: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    """Released by each append."""
    fetched: Mapping[TopicPartition, Fetched] = field(default_factory=dict)
    deleted: Mapping[TopicPartition, Deleted] = field(default_factory=dict)
    written_by: Mapping[TopicPartition, ProducerStates | Exception] = field(default_factory=dict)
    asked: list[Any] = field(default_factory=list)
    hosted: Mapping[TopicPartition, Any] = field(default_factory=dict)

    def cast_to_replicas(self) -> Replicas:
        return cast(Replicas, self)

    def append(
        self, where: TopicPartition, records: bytes, *, acks: int, timeout_ms: int
    ) -> Callable[[], Awaitable[Appended]]:
        self.asked.append((where, len(records), acks, timeout_ms))
        self.has_appended.release()
        answer = self.appended.get(where)
        if isinstance(answer, Exception):
            raise answer
        return partial(self._wait, answer)

    async def append_marker(self, where: TopicPartition, end: EndOfTransaction, *, timeout_ms: int) -> None:
        self.asked.append((where, end))
        answer = self.appended[where]
        if isinstance(answer, Exception):
            raise answer

    async def fetch(self, asked: Fetch) -> Mapping[TopicPartition, Fetched]:
        self.asked.append(asked)
        return {where: self.fetched[where] for where in asked.partitions}

    async def delete_records(
        self, offsets: Mapping[TopicPartition, int], *, timeout_ms: int
    ) -> Mapping[TopicPartition, Deleted]:
        self.asked.append((offsets, timeout_ms))
        return self.deleted

    def on_brokers_changed(self) -> None: ...

    def producers(self, where: TopicPartition) -> ProducerStates:
        states = self.written_by[where]
        if isinstance(states, Exception):
            raise states
        return states

    def list_offset(self, where: TopicPartition, timestamp_ms: int, **asked: Any) -> ListedOffset:
        self.asked.append((where, timestamp_ms, asked))
        return ListedOffset(7, 70, LeaderEpoch(2))

    def find_epoch_end(self, where: TopicPartition, **asked: Any) -> EpochEnd:
        self.asked.append((where, asked))
        return EpochEnd(LeaderEpoch(2), 9)

    async def _wait(self, answer: Appended | None) -> Appended:
        if answer is None:
            await self.acknowledged.wait()
        return answer or Appended(first_offset=0, last_offset=0)
