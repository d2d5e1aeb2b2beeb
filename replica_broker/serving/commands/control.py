"""The commands of the controller: LeaderAndIsr, StopReplica, UpdateMetadata.

The gate has judged the sender (`authorizing.command_gate`); here its epochs are. A request of an older controller gets
STALE_CONTROLLER_EPOCH. A higher epoch than before is believed only if ZooKeeper has it: otherwise one request with an
invented epoch would make this broker refuse its controller for ever.
One for an earlier registration of this broker gets STALE_BROKER_EPOCH, unless its epoch is -1, which disables the
check. A newer broker epoch is accepted, because the controller may see a registration before this broker does.
Everything else is decided for each partition by its leader epoch.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Protocol

import structlog
from kio.schema.errors import ErrorCode

from controller_core.model.ids import BrokerEpoch, ControllerEpoch, TopicName
from controller_core.wire.limits.request_limits import RequestLimits
from controller_core.wire.listener.owned_api import NoAnswerNow
from controller_core.wire.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import ZkError
from replica_broker.membership.node import Node

log = structlog.get_logger()

LIMITS: Final = RequestLimits(max_bytes=100 * 1024 * 1024, max_items=10_000_000, max_entries=1_000_000)

_UNCHECKED: Final = BrokerEpoch(-1)


class CommandedReplicas(Protocol):
    """The replicas that carry out the commands."""

    async def on_leader_and_isr_command(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse: ...

    async def on_stop_replica_command(self, request: StopReplicaRequest) -> StopReplicaResponse: ...

    def on_brokers_changed(self) -> None: ...


def refuse_leader_and_isr(_: LeaderAndIsrRequest, error_code: ErrorCode) -> LeaderAndIsrResponse:
    """Return the answer that refuses a whole command."""
    return LeaderAndIsrResponse(error_code=error_code, topics=())


def refuse_stop_replica(_: StopReplicaRequest, error_code: ErrorCode) -> StopReplicaResponse:
    """Return the answer that refuses a whole command."""
    return StopReplicaResponse(error_code=error_code, partition_errors=())


def refuse_update_metadata(_: UpdateMetadataRequest, error_code: ErrorCode) -> UpdateMetadataResponse:
    """Return the answer that refuses a whole command."""
    return UpdateMetadataResponse(error_code=error_code)


class Control:
    """Obeys the newest controller, one command at a time: an old and a new controller may both be connected.

    `load_configs` reads the configurations of topics before their replicas start. `read_epoch` reads the newest
    controller epoch from ZooKeeper.
    """

    def __init__(
        self,
        node: Node,
        replicas: CommandedReplicas,
        load_configs: Callable[[Iterable[TopicName]], Awaitable[None]],
        read_epoch: Callable[[], Awaitable[ControllerEpoch | None]],
    ) -> None:
        self._node = node
        self._replicas = replicas
        self._load_configs = load_configs
        self._read_epoch = read_epoch
        self._controller_epoch = ControllerEpoch(-1)
        self._turn = asyncio.Lock()

    async def on_leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Run seed 004's on_LeaderAndISRCommand.

        Raises `NoAnswerNow` if ZooKeeper is unreachable; the controller repeats the command.
        """
        async with self._turn:
            stale = await self._stale(request)
            if stale is not None:
                return refuse_leader_and_isr(request, stale)
            try:
                await self._load_configs(topic.topic_name for topic in request.topic_states)
            except ZkError as error:
                raise NoAnswerNow(f"the topics' configurations are unreadable: {error}") from error
            return await self._replicas.on_leader_and_isr_command(request)

    async def on_stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Run seed 004's on_StopReplicaCommand."""
        async with self._turn:
            stale = await self._stale(request)
            if stale is not None:
                return refuse_stop_replica(request, stale)
            return await self._replicas.on_stop_replica_command(request)

    async def on_update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """Update the metadata cache."""
        async with self._turn:
            stale = await self._stale(request)
            if stale is not None:
                return refuse_update_metadata(request, stale)
            if not self._node.metadata.is_filled:
                log.info("first metadata from a controller", controller=request.controller_id)
            self._node.metadata.update(request)
            self._replicas.on_brokers_changed()
            return UpdateMetadataResponse(error_code=ErrorCode.none)

    async def _stale(
        self, request: LeaderAndIsrRequest | StopReplicaRequest | UpdateMetadataRequest
    ) -> ErrorCode | None:
        await self._node.wait_until_registered()
        asked = type(request).__name__
        if request.is_kraft_controller:
            log.warning("command refused: it is from a KRaft controller", command=asked)
            return ErrorCode.stale_controller_epoch
        # Only an older epoch is stale. A newer one means that the controller saw a registration before this broker did.
        if _UNCHECKED != request.broker_epoch < self._node.epoch:
            log.info(
                "command refused: it is for an earlier registration of this broker",
                command=asked,
                broker_epoch=request.broker_epoch,
                own_epoch=self._node.epoch,
            )
            return ErrorCode.stale_broker_epoch
        if request.controller_epoch < self._controller_epoch:
            log.info(
                "command refused: there is a newer controller",
                command=asked,
                controller_epoch=request.controller_epoch,
                known_epoch=self._controller_epoch,
            )
            return ErrorCode.stale_controller_epoch
        if request.controller_epoch > self._controller_epoch:
            await self._require_written(request.controller_epoch)
        self._controller_epoch = request.controller_epoch
        return None

    async def _require_written(self, epoch: ControllerEpoch) -> None:
        """Raise `NoAnswerNow` if ZooKeeper has no such controller epoch. A controller writes it before it commands."""
        try:
            written = await self._read_epoch()
        except (MalformedZnode, ZkError) as error:
            raise NoAnswerNow(f"the controller epoch is unreadable: {error}") from error
        if written is None or epoch > written:
            log.warning("command refused: no controller has its epoch", controller_epoch=epoch, written_epoch=written)
            raise NoAnswerNow(f"controller epoch {epoch} is not that of a controller in ZooKeeper")
