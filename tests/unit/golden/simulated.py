"""The cluster of the conformance tests in memory: our handlers and simulated brokers and znodes, without a server.

A request is encoded, decoded and answered by the listener's own table of APIs, as a client's request is. The simulation
runs in an event loop of its own while a test waits or asks, and its time is virtual.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final, TypeVar, cast

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kio.index import load_response_schema
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.process.listening import ListenerAssembly
from controller_core.process.run import SERVED_APIS
from controller_core.wire.codecs.frames import (
    LENGTH_BYTES,
    decode_response,
    encode_request,
    read_request_head,
)
from controller_core.wire.listener.owned_api import index_by_key
from controller_core.zk.session import Create, SetData, ZkNode
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.running.patience import SILENCE_S
from simulation.checks import simulate_cluster
from simulation.cluster import Cluster, tp
from simulation.process import ProcessSettings
from tests.golden.answers import Exchanges
from tests.real.conformance.clusters import ConformanceCluster

T = TypeVar("T")

BROKERS: Final = (1, 2, 3)


class Simulation:
    """The simulated cluster, for callers that are not asynchronous."""

    def __init__(self, runner: asyncio.Runner, cluster: Cluster) -> None:
        self._runner = runner
        self.cluster = cluster
        self.exchanges = Exchanges()
        """The exchanges since the test body began."""
        process = cluster.active
        assembly = ListenerAssembly(process.session, SERVED_APIS, lambda: process.controller.term, process.answer)
        self._apis = index_by_key(assembly.make_apis("PLAINTEXT"))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def act(self, action: Callable[..., None], *args: Any) -> None:
        """Call an action in the event loop, where watches fire."""

        async def run_action() -> None:
            action(*args)

        self.run(run_action())

    def answer(self, request: RequestPayload, response_type: type[ResponsePayload]) -> Any:
        """Return the controller's answer, in the version of the request."""
        return decode_response(
            response_type, self.run(self._answer(encode_request(request, 1, "client")[LENGTH_BYTES:]))
        )

    async def _answer(self, content: bytes) -> bytes:
        head = read_request_head(content)
        answering = asyncio.create_task(self._apis[head.api_key].respond(head, content))
        while not answering.done():
            await self.cluster.settle()
        frame = answering.result()
        assert isinstance(frame, bytes), "the controller answers by itself, and nobody has a quota"
        return frame[LENGTH_BYTES:]


class Tree:
    """The calls of ZooKeeper's client that the tests use, on the simulated znodes."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._tree = simulation.cluster.zk.tree

    def get(self, path: str) -> tuple[bytes, ZkNode]:
        node = self._tree.read(path)
        if node is None:
            raise NoNodeError(path)
        return node.data, node

    def exists(self, path: str) -> ZkNode | None:
        return self._tree.read(path)

    def get_children(self, path: str) -> Sequence[str]:
        return self._tree.children(path) or ()

    def set(self, path: str, data: bytes) -> None:
        self._simulation.act(self._simulation.cluster.write, SetData(path=path, data=data))

    def ensure_path(self, path: str) -> None:
        assert self.exists(path), path

    def transaction(self) -> "Transaction":
        return Transaction(self._simulation)


class Transaction:
    """Znodes that are created together."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._creates: list[Create] = []

    def create(self, path: str, data: bytes) -> None:
        self._creates.append(Create(path=path, data=data))

    def commit(self) -> tuple[()]:
        self._simulation.act(self._simulation.cluster.write, *self._creates)
        return ()


class SimulatedBrokers:
    """Starts and kills the simulated brokers, as `KafkaCluster` does the real ones."""

    brokers = BROKERS

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def broker(self, number: int) -> Any:
        act, cluster = self._simulation.act, self._simulation.cluster
        return SimpleNamespace(kill=lambda: act(cluster.kill_broker, number))

    def start(self) -> None:
        cluster = self._simulation.cluster
        dead = [number for number in BROKERS if number not in cluster.live]
        self._simulation.act(cluster.start_brokers, *dead)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedConformance(ConformanceCluster):
    """A `ConformanceCluster` whose controller is our `Controller` in this process."""

    simulation: Simulation

    def wait(self, condition: Callable[[], bool], what: str, *, silence_s: float = SILENCE_S) -> None:
        """Run until the cluster is at rest and its followers have caught up. Nothing changes after that."""
        self.simulation.run(self.simulation.cluster.replicate())
        assert condition(), f"not so when the cluster is at rest: {what}"

    def ask_controller(self, request: RequestPayload, response_type: type[ResponsePayload] | None = None) -> Any:
        kind = response_type or load_response_schema(int(request.__api_key__), int(request.__version__))
        answer = self.simulation.answer(request, kind)
        self.simulation.exchanges.add(request, answer)
        return answer

    def ask_at(
        self, address: tuple[str, int], request: RequestPayload, response_type: type[ResponsePayload] | None = None
    ) -> Any:
        raise AssertionError("simulated brokers answer no clients")

    def _find_known(self, broker: int, topic: str, partition: int) -> tuple[int, list[int], int, list[int]] | None:
        known = self.simulation.cluster.broker(broker).metadata.partitions.get(tp(topic, partition))
        if known is None:
            return None
        return known.leader, [*known.isr], known.leader_epoch, [*known.replicas]


@contextmanager
def simulate_conformance() -> Iterator[SimulatedConformance]:
    """Start brokers and a controller, with the settings of the live cluster."""
    with asyncio.Runner() as runner:
        started = AsyncExitStack()
        cluster = runner.run(started.enter_async_context(simulate_cluster()))
        try:
            cluster.settings = ProcessSettings(default_replication_factor=len(BROKERS))
            cluster.start_brokers(*BROKERS)
            runner.run(cluster.serve())
            simulation = Simulation(runner, cluster)
            yield SimulatedConformance(
                kafka=cast(KafkaCluster, SimulatedBrokers(simulation)),
                znodes=ClusterZnodes(cast(KazooClient, Tree(simulation))),
                own_controller=None,
                simulation=simulation,
            )
        finally:
            runner.run(started.aclose())
