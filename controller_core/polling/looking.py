"""One poll of a cluster without ZooKeeper: a few requests over one connection, whatever the number of topics.

The controllers report moves and their leader, the broker its brokers and topics. Some configurations of known topics
are read now and then, in turn, and searched if the controllers' log indicates a change.

A broker applies the controllers' log some moments after they have committed it, and reports its applied offset. So an
awaited poll waits until the broker has applied all that was committed when the poll began. No poll is older than an
earlier one, even at another broker.
Controllers are ahead of brokers, so they are asked for moves before and after the broker. `agreement` derives the moves
at the moment of the broker's answer, or the poll asks again."""

import asyncio
from collections.abc import Set
from contextlib import closing
from dataclasses import replace
from typing import Final

from kio.schema.metadata.v11 import MetadataResponse

from controller_core.client.errors import OutcomeUnknown, Unreachable
from controller_core.client.quorum import Quorum
from controller_core.client.snapshot import read_brokers
from controller_core.client.transport.kept_client import KeptClient
from controller_core.client.transport.request_client import Address
from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import TopicName, TopicPartition
from controller_core.polling.agreement import Agreement, Asked, Round
from controller_core.polling.answers import (
    Moves,
    Topics,
    read_finalized_features,
    read_leader,
    read_topics,
)
from controller_core.polling.catching_up import BEHIND_S, PAUSE_S, wait_until_caught_up
from controller_core.polling.configurations import Configs
from controller_core.polling.known_cluster import KnownCluster
from controller_core.polling.log_growth import LogGrowth
from controller_core.polling.questions import Metadata, ask_moves, ask_quorum, ask_versions
from controller_core.polling.self_descriptions import SelfDescriptions

_NOBODY: Final = Quorum(leader=None, epoch=-1, committed=-1, written=-1)


class Looking:
    """Polls one cluster again and again, and keeps the result in `known`."""

    def __init__(self) -> None:
        self.known = KnownCluster()
        self._position = -1
        """The log offset of the last poll."""
        self._agreement = Agreement(self.known)
        self._metadata = Metadata()
        self._read: tuple[MetadataResponse, Topics] | None = None
        self._descriptions = SelfDescriptions()
        self._configs = Configs()
        self._growth = LogGrowth()

    @property
    def searched_s(self) -> float:
        """Total seconds spent waiting for answers of searches, which have a budget of their own."""
        return self._configs.searched_s

    async def look(self, client: KeptClient, protocol: str, touched: Set[TopicName], *, is_waited_for: bool) -> None:
        """Ask for everything and store it.

        `protocol`: the security protocol of the brokers. `touched`: topics whose configurations are read first.
        `is_waited_for`: everything that was done before has to be visible, which is guaranteed if the controllers have
        a leader.

        Raises `AdminError` and `Undecodable`."""
        moves, asked = await self._ask_controllers(client)
        # While something moves, the broker has to show the state that the controllers' answer is about.
        is_exact = is_waited_for or bool(moves or self.known.moves)
        await self._wait_for_offset(client, asked.quorum.committed if is_exact else None)
        metadata, topics = await self._ask_metadata(client)
        if asked.quorum.leader is None:
            topics = self._agreement.hold_back(topics, self._agreement.find_doubtful_without_controllers(topics))
        elif topics is not self.known.topics or moves or self.known.moves or not self._agreement.has_agreed:
            first = Round(before=moves, asked=asked, topics=topics, position=self._position)
            metadata, topics, moves = await self._agree(client, metadata, first, is_waited_for=is_waited_for)
        self.known.take_cluster(metadata.cluster_id, read_leader(asked.quorum), asked.quorum.voters)
        brokers = read_brokers(metadata, protocol)
        client.learn([Address(each.host, each.port) for broker in brokers.values() for each in broker.endpoints])
        self.known.take_brokers(brokers, await self._descriptions.read(brokers.values(), client))
        self.known.take_topics(topics, moves, self._position)
        await self._take_configs(client, touched)

    async def has_changed(self, client: KeptClient) -> bool:
        """Return True if the controllers' log indicates a change since it was last asked for. One small request. Raises
        like `look`."""
        return self._take_growth(read_finalized_features(await ask_versions(client)).epoch)

    def _take_growth(self, position: int) -> bool:
        is_of_changes = self._growth.is_of_changes(position, self._now_s())
        if is_of_changes:
            self._configs.suspect()
        return is_of_changes

    async def _ask_controllers(self, client: KeptClient) -> tuple[Moves, Asked]:
        """Return the moves, and then the quorum with its committed offset. Without a leader the last known moves still
        hold.

        A broker without a leader keeps such requests longer than the client waits. So the conclusion "no leader"
        requires that the broker answers other requests. Raises `AdminError` if the broker does not answer."""
        server = client.server
        try:
            moves, asked = await ask_moves(client), await self._ask_quorum(client)
            if asked.quorum.is_led:
                return moves, asked
        except (Unreachable, OutcomeUnknown) as error:
            if isinstance(error, OutcomeUnknown) and not isinstance(error.__cause__, TimeoutError):
                raise
            with closing(client.restrict_to(server)) as broker:
                await ask_versions(broker)
        return self.known.moves, Asked(_NOBODY, self._now_s())

    async def _ask_quorum(self, client: KeptClient) -> Asked:
        at_s = self._now_s()
        return Asked(await ask_quorum(client), at_s)

    async def _wait_for_offset(self, client: KeptClient, committed: int | None) -> None:
        """Wait until the broker has applied the committed offset, at least that of the last poll, and store its
        features.

        Raises `Unreachable` if the broker stays behind, and moves on to another one."""

        async def ask() -> FinalizedFeatures:
            features = read_finalized_features(await ask_versions(client))
            self._take_growth(features.epoch)
            return features

        features = await wait_until_caught_up(ask, max(self._position, -1 if committed is None else committed - 1))
        if features is None:
            raise self._leave_lagging_broker(client)
        self.known.take_features(features)
        self._position = features.epoch

    def _leave_lagging_broker(self, client: KeptClient) -> Unreachable:
        """Move on to another broker, and return the error for this one."""
        behind = client.server
        client.move_on()
        return Unreachable(f"{behind} does not catch up with the controllers")

    @staticmethod
    def _now_s() -> float:
        return asyncio.get_running_loop().time()

    async def _ask_metadata(self, client: KeptClient) -> tuple[MetadataResponse, Topics]:
        """Return the metadata and topics. The topics are the known object if nothing differs."""
        metadata = await self._metadata.ask(client)
        if self._read is None or self._read[0] is not metadata:
            topics = read_topics(metadata)
            self._read = metadata, self.known.topics if topics == self.known.topics else topics
        return self._read

    async def _agree(
        self, client: KeptClient, metadata: MetadataResponse, first: Round, *, is_waited_for: bool
    ) -> tuple[MetadataResponse, Topics, Moves]:
        """Return metadata, topics and moves as of one moment. `first`: the answers before the controllers are asked
        again.

        An awaited poll waits for the partitions that are doubtful at its start. Partitions that become doubtful later
        are left to the next poll. Raises `AdminError`."""
        deadline_s = self._now_s() + BEHIND_S
        round_ = first
        waited_for: Set[TopicPartition] | None = None
        while True:
            round_ = replace(round_, after=await ask_moves(client))
            agreed = self._agreement.conclude(round_)
            if waited_for is None:
                waited_for = agreed.doubtful if is_waited_for else frozenset()
            if not agreed.is_first_in_doubt and not agreed.doubtful & waited_for:
                return metadata, self._agreement.hold_back(round_.topics, agreed.doubtful), agreed.moves
            if self._now_s() >= deadline_s:
                raise self._leave_lagging_broker(client)
            await asyncio.sleep(PAUSE_S)
            asked = await self._ask_quorum(client)
            if not asked.quorum.is_led:
                raise Unreachable("the controllers have lost their leader")
            await self._wait_for_offset(client, asked.quorum.committed)
            topics = round_.topics
            if self._position > round_.position:
                metadata, topics = await self._ask_metadata(client)
            earlier = {**round_.earlier, **round_.before}
            round_ = Round(earlier=earlier, before=round_.after, asked=asked, topics=topics, position=self._position)

    async def _take_configs(self, client: KeptClient, touched: Set[TopicName]) -> None:
        """Read the configurations of new topics, of touched topics, and some of those that were not read for
        longest."""
        is_explained = self.known.has_news
        wanted = [*self.known.find_topics_without_configs(), *(name for name in touched if name in self.known.topics)]
        async for found in self._configs.read(client, wanted):
            self.known.take_configs(found, self._position)
        async for found in self._configs.read_due(client, self.known, is_explained=is_explained):
            self.known.take_configs(found, self._position)
