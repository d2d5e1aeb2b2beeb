"""A cluster without ZooKeeper, in the place of the brokers and the ZooKeeper of `world`, and its possible answers."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final

from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.client.errors import OutcomeUnknown, Unreachable
from controller_core.client.log_dirs.log_sizes import BrokerClient
from controller_core.client.transport.request_client import Address, ControllerClient
from controller_core.polling.pace import Pace
from controller_operator.kubernetes.object_api import ObjectApi
from controller_operator.observation.poller import ClusterPoller
from controller_operator.reconciling.runtime import OperatorRuntime
from controller_operator.settings import OperatorSettings
from simulation.cluster.names import tp
from simulation.controller_client import SimulatedControllerClient
from simulation.kraft import QuorumCluster
from simulation.kraft.changes import make_failure
from simulation.kraft.clients import SimulatedKeptClient, make_answer
from simulation.kraft.partitions import NOBODY
from tests.unit.operator.crashes.operated import CLUSTER, Operated
from tests.unit.operator.running.simulated_watcher import SimulatedWatcher

BROKERS: Final = (1, 2, 3, 4, 5, 6)
_REPLICATION_PAUSE_S: Final = 0.5
_LEADERLESS_S: Final = 40.0
_PACE: Final = Pace(usual_s=4.0, longest_quiet_s=8.0, while_moving_s=1.0)


class QuorumWorld(Operated):
    """See `Operated`. `asked`: the requests for changes among `writes`, by their place there, from 1."""

    momentary = (*Operated.momentary, "epoch")
    """The fields that depend on the moment. The epoch of features is the progress of the cluster at the time of the
    read."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = QuorumCluster(*BROKERS)
        self.cluster.supported["f"] = (1, 3)
        self.asked: list[int] = []
        self.leaderless_at: int | None = None
        """The write at which the controllers lose their leader, for some time."""
        self.code: ErrorCode | None = None
        """The error that a request for changes gets in place of a mishap."""

    def new_operator(self, api: ObjectApi, now: Callable[[], datetime]) -> OperatorRuntime:
        return OperatorRuntime(
            OperatorSettings(all_namespaces=True),
            api,
            SimulatedWatcher(api),
            _no_zookeeper,
            self._client,
            now,
            open_broker=_no_sizes,
            open_poller=lambda _address, _listener_of: ClusterPoller(
                lambda: (SimulatedKeptClient(self.cluster), "PLAINTEXT"), pace=_PACE
            ),
        )

    def kafka(self) -> Mapping[str, Any]:
        """The ids of topics say how often one was created."""
        topics = self.cluster.topics
        return {
            "topics": {name: str(self.cluster.topic(name)) for name in topics},
            "leaders": {
                f"{name}-{at}": str(self.cluster.find_leadership(tp(name, at)))
                for name, topic in topics.items()
                for at in range(len(topic.partitions))
            },
            "configs": {name: str(sorted(topic.config.items())) for name, topic in topics.items()},
            "limits": {
                "brokers": str(sorted(self.cluster.broker_defaults.items())),
                "recorded": str([each.entries for each in self.api.config_maps.values()]),
            },
            "features": str(sorted(self.cluster.features.items())),
        }

    def lose_leader(self) -> None:
        """Let the controllers lose their leader, and elect another one after a while."""
        self.cluster.quorum_leader = NOBODY
        asyncio.get_running_loop().call_later(_LEADERLESS_S, self._elect)

    def _elect(self) -> None:
        self.cluster.quorum_leader, self.cluster.quorum_epoch = 102, self.cluster.quorum_epoch + 1

    def _client(self, bootstrap: Sequence[Address], **_: object) -> ControllerClient:
        return _MortalClient(self)


class _MortalClient:
    """The way to the controllers."""

    def __init__(self, world: QuorumWorld) -> None:
        self._world = world
        self._client = SimulatedControllerClient(lambda: self._answer)
        self._is_done = True

    async def ask(self, request: RequestPayload, response_type: type[Any]) -> Any:
        async def act() -> Any:
            if len(self._world.writes) == self._world.leaderless_at:
                self._world.lose_leader()
            return await self._client.ask(request, response_type)

        async def lose(is_done: bool) -> Any:
            self._is_done = is_done
            if self._world.code is not None:
                return await act()
            if not is_done:
                raise Unreachable("nobody answers")
            self._client.answers_to_lose += 1
            return await act()

        self._world.asked.append(len(self._world.writes) + 1)
        return await self._world.write(type(request).__name__, act, lose)

    async def _answer(self, request: RequestPayload) -> ResponsePayload:
        is_mishap = self._world.code is not None and self._world.life.writes == self._world.life.last_write
        if is_mishap and not self._is_done:
            return make_failure(request, self._world.code or ErrorCode.none)
        answer = make_answer(self._world.cluster, request)
        return make_failure(request, self._world.code or ErrorCode.none) if is_mishap else answer


class _NoSizes:
    async def ask_any(self, request: RequestPayload, response_type: type[Any]) -> Any:
        raise OutcomeUnknown("nobody says how large a log is")


def _no_sizes(bootstrap: Sequence[Address], **_: object) -> BrokerClient:
    return _NoSizes()


async def _no_zookeeper(_address: str) -> Any:
    raise AssertionError("there is none")


@asynccontextmanager
async def quorum_installation() -> AsyncIterator[QuorumWorld]:
    """Six brokers that catch up, controllers with a leader, and the KafkaCluster `demo`; no operator yet."""
    world = QuorumWorld()
    await world.apply(CLUSTER.kind, CLUSTER.name, {"bootstrapServers": "broker-1:9092"})
    replicating = asyncio.create_task(_replicate(world.cluster))
    try:
        yield world
    finally:
        replicating.cancel()
        await asyncio.gather(replicating, return_exceptions=True)


async def _replicate(cluster: QuorumCluster) -> None:
    while True:
        await asyncio.sleep(_REPLICATION_PAUSE_S)
        cluster.replicate()
