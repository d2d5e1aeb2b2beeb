"""Taking the controller's role, and the holders from which it may be taken.

One multi raises `/controller_epoch` and creates our `/controller`, so every write of an earlier controller fails from
then on (KAFKA-6082). The role is taken if nobody has it, and from a Kafka broker, whose own controller then resigns. It
is not taken from another live Kontroller, unless a request says so (`requested_role`), and never from a KRaft
controller, which holds it while it migrates the cluster (KIP-866). A znode is ours by its session, not by the id in it
(KAFKA-7165, KAFKA-13407).
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

import structlog

from controller_core.controller.loop.clock import Clock
from controller_core.controller.term.controller_epochs import find_epoch_above
from controller_core.model.ids import BrokerId, ControllerEpoch
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.compare_and_set import ensure_znodes
from controller_core.zk.session import (
    Check,
    Create,
    CreateMode,
    Delete,
    SessionId,
    SetData,
    TransactionFailed,
    WriteOp,
    ZkNode,
    ZkSession,
    ZkVersion,
)

log = structlog.get_logger()

_NO_EPOCH: Final = ControllerEpoch(-1)
_FIRST_EPOCH: Final = Create(path=paths.CONTROLLER_EPOCH, data=codecs.encode_controller_epoch(ControllerEpoch(0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRole:
    """The role as it was won: its epoch, and the version of `/controller_epoch` that fences every write under it."""

    epoch: ControllerEpoch
    epoch_version: ZkVersion


class Holder(Enum):
    """The holder of `/controller`, from the view of a process without a term."""

    NOBODY = auto()
    OURSELVES = auto()
    """Our session created it, but the response was lost, or the term has ended since."""
    PREDECESSOR = auto()
    """Another session under our id: of a dead process, or a former session of ours (`Presence`)."""
    KAFKA_BROKER = auto()
    KRAFT_CONTROLLER = auto()
    OTHER_KONTROLLER = auto()


def find_holder(
    node: ZkNode | None,
    *,
    own_id: BrokerId,
    own_session: SessionId,
    registered_brokers: Collection[BrokerId],
) -> Holder:
    """Return the holder. An unreadable `/controller` counts as a Kafka broker's, so that the role can be taken from it."""
    if node is None:
        return Holder.NOBODY
    if node.ephemeral_owner == own_session:
        return Holder.OURSELVES
    try:
        controller, is_kraft = codecs.decode_controller(node.data), codecs.is_kraft_controller(node.data)
    except MalformedZnode as error:
        log.error("unreadable /controller, the role can be taken from its holder", error=str(error))
        return Holder.KAFKA_BROKER
    if is_kraft:
        return Holder.KRAFT_CONTROLLER
    if controller in registered_brokers:
        return Holder.KAFKA_BROKER
    return Holder.PREDECESSOR if controller == own_id else Holder.OTHER_KONTROLLER


async def take_role(
    zk: ZkSession,
    own_id: BrokerId,
    node: ZkNode | None,
    clock: Clock,
    further: Sequence[WriteOp] = (),
    *,
    used: ControllerEpoch = _NO_EPOCH,
) -> HeldRole | None:
    """Take the role from its holder according to `node`. Return None if another process was faster.

    `further` is written in the same transaction. `used` is the largest epoch that this process had before, because
    `/controller_epoch` may be lower if somebody restored a backup. Raises `ConnectionLost` if it is unknown whether the
    role was taken; then read `/controller` again.
    """
    await ensure_znodes(zk, [_FIRST_EPOCH], zk.transact)
    epoch_node, present = await zk.read_many([paths.CONTROLLER_EPOCH, paths.CONTROLLER])
    # Every new holder raises the epoch. One before this read has another znode; a later one makes the write fail.
    if epoch_node is None or (present and present.czxid) != (node and node.czxid):
        return None
    epoch = find_epoch_above(ControllerEpoch(codecs.decode_controller_epoch(epoch_node.data) + 1), [used])
    data = codecs.encode_controller(own_id, clock.now_ms())
    ops: list[WriteOp] = [
        SetData(path=paths.CONTROLLER_EPOCH, data=codecs.encode_controller_epoch(epoch), version=epoch_node.version)
    ]
    if node is not None:
        ops.append(Delete(path=paths.CONTROLLER, version=node.version))
    ops.append(Create(path=paths.CONTROLLER, data=data, mode=CreateMode.EPHEMERAL))
    ops += further
    try:
        await zk.transact(ops)
    except TransactionFailed as error:
        log.info("another controller was faster", reason=str(error))
        return None
    return HeldRole(epoch=epoch, epoch_version=ZkVersion(epoch_node.version + 1))


async def vacate(zk: ZkSession, node: ZkNode) -> None:
    """Delete `/controller` if it is still the same as `node`: our own, or that of a dead process."""
    epoch_node, present = await zk.read_many([paths.CONTROLLER_EPOCH, paths.CONTROLLER])
    if epoch_node is None or present is None or present.czxid != node.czxid:
        return
    with suppress(TransactionFailed):  # somebody else has the role by now
        await zk.transact(
            [Check(path=paths.CONTROLLER_EPOCH, version=epoch_node.version), Delete(path=paths.CONTROLLER)]
        )
