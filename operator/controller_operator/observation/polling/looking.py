"""One look at a cluster without ZooKeeper: a few requests over one connection, however many topics there are.

What moves and who leads the controllers answer; the brokers and topics the broker knows itself; and of the configurations
of known topics some are read each time, in turns.

**What was done is seen.** A broker applies the controllers' log some moments after they have decided. It says how far it
has come (the epoch of finalized features is that offset), and the controllers say how far they have decided. So a look that
somebody waits for waits until the broker has come as far as all was decided when it began. No look is older than the one
before it, also where another broker was asked for it.

**What moves.** A broker shows a partition that is reassigned with its old and its new replicas, and only the controllers
tell which are which. Where the two answers could belong to different moments both are asked again, until they agree.
"""

import asyncio
from collections.abc import Mapping, Set
from typing import Final

from kio.schema.metadata.v12 import MetadataResponse

from controller_core.model.ids import TopicName, TopicPartition
from controller_core.wire.client.kept_client import KeptClient
from controller_core.wire.client.request_client import Address, AnswerLost, ControllerUnreachable
from controller_operator.observation.polling.answers import Move, Topic, brokers_in, finalized_in, topics_in
from controller_operator.observation.polling.configurations import Configs
from controller_operator.observation.polling.known_cluster import KnownCluster
from controller_operator.observation.polling.questions import (
    Metadata,
    Quorum,
    ask_moves,
    ask_quorum,
    ask_versions,
)
from controller_operator.observation.polling.supported_features import SupportedFeatures

_BEHIND_S: Final = 5.0
"""How long a broker may take to come as far as the controllers."""
_BEHIND_PAUSE_S: Final = 0.03
_AGREEING_ROUNDS: Final = 5

Topics = Mapping[TopicName, Topic]
Moves = Mapping[TopicPartition, Move]


class Looking:
    """Looks at one cluster again and again, and keeps what it heard in `known`."""

    def __init__(self) -> None:
        self.known = KnownCluster()
        self._position = -1
        """How far the last look has come in the controllers' log."""
        self._metadata = Metadata()
        self._read: tuple[MetadataResponse, Topics] | None = None
        self._supported = SupportedFeatures()
        self._configs = Configs()

    async def look(self, client: KeptClient, protocol: str, touched: Set[TopicName], *, is_waited_for: bool) -> None:
        """Asks for all and takes it in. `protocol`: by which brokers are spoken to; `touched`: whose configurations are
        read before those of others; `is_waited_for`: all that was done before it is to be seen.

        Raises `RequestError`, `NoKRaftError` and `Undecodable`."""
        quorum, moves = await self._ask_controllers(client, is_waited_for=is_waited_for)
        is_exact = is_waited_for or bool(moves or self.known.moves)
        await self._come_to(client, quorum.committed if is_exact else None)
        metadata, topics = await self._ask_metadata(client)
        if quorum.controller is not None and (topics is not self.known.topics or moves or self.known.moves):
            metadata, topics, moves = await self._agreed(client, metadata, topics, moves)
        self.known.take_cluster(metadata.cluster_id, quorum.controller)
        brokers = brokers_in(metadata, protocol)
        client.learn([Address(each.host, each.port) for broker in brokers.values() for each in broker.endpoints])
        self.known.take_brokers(brokers, await self._supported.of(brokers.values(), client))
        self.known.take_topics(topics, moves, self._position)
        await self._take_configs(client, touched)

    async def _ask_controllers(self, client: KeptClient, *, is_waited_for: bool) -> tuple[Quorum, Moves]:
        """Who leads, and what moves. While nobody leads brokers still know all that was decided before."""
        try:
            quorum = await ask_quorum(client)
            if quorum.controller is not None:
                return quorum, await ask_moves(client)
        except (ControllerUnreachable, AnswerLost):
            if is_waited_for:
                raise
        if is_waited_for:
            raise ControllerUnreachable("the controllers have no leader")
        return Quorum(None, -1), self.known.moves

    async def _come_to(self, client: KeptClient, committed: int | None) -> None:
        """Waits until the broker has come so far, or as far as the last look; takes in what is finalized there.

        Raises `ControllerUnreachable` for a broker that stays behind, and has another one asked."""
        deadline_s = asyncio.get_running_loop().time() + _BEHIND_S
        while True:
            features = finalized_in(await ask_versions(client))
            if features.epoch >= max(self._position, -1 if committed is None else committed - 1):
                self.known.take_features(features)
                self._position = features.epoch
                return
            if asyncio.get_running_loop().time() >= deadline_s:
                behind = client.server
                client.move_on()
                raise ControllerUnreachable(f"{behind} does not come as far as the controllers")
            await asyncio.sleep(_BEHIND_PAUSE_S)

    async def _ask_metadata(self, client: KeptClient) -> tuple[MetadataResponse, Topics]:
        """The topics are the same object as those known where there is no difference."""
        metadata = await self._metadata.ask(client)
        if self._read is None or self._read[0] is not metadata:
            topics = topics_in(metadata)
            self._read = metadata, self.known.topics if topics == self.known.topics else topics
        return self._read

    async def _agreed(
        self, client: KeptClient, metadata: MetadataResponse, topics: Topics, moves: Moves
    ) -> tuple[MetadataResponse, Topics, Moves]:
        """Both as they were at one moment: the broker was asked between two equal answers of the controllers, and twice
        where a partition has other replicas than before and does not move."""
        looked_at: Set[TopicPartition] = frozenset()
        for _ in range(_AGREEING_ROUNDS):
            after = await ask_moves(client)
            unexplained = self._unexplained(topics, after)
            if after == moves and unexplained <= looked_at:
                break
            moves, looked_at = after, unexplained
            await self._come_to(client, (await ask_quorum(client)).committed)
            metadata, topics = await self._ask_metadata(client)
        return metadata, topics, moves

    def _unexplained(self, topics: Topics, moves: Moves) -> Set[TopicPartition]:
        """Partitions that have other replicas than before and do not move: they have arrived, or begin to move just now."""
        return {
            TopicPartition(name, number)
            for name, topic in topics.items()
            if (known := self.known.topics.get(name)) is not None and known != topic
            for number, partition in topic.partitions.items()
            if (before := known.partitions.get(number)) is not None
            and before.replicas != partition.replicas
            and TopicPartition(name, number) not in moves
        }

    async def _take_configs(self, client: KeptClient, touched: Set[TopicName]) -> None:
        """Those of new topics, those that were touched, and of the others some that were not read for longest."""
        wanted = [*self.known.without_configs(), *(name for name in touched if name in self.known.topics)]
        async for found in self._configs.of(client, wanted):
            self.known.take_configs(found, self._position)
        self.known.take_configs(await self._configs.next_ones(client, self.known.topics), self._position)
