"""A snapshot of the controller's role from ZooKeeper: its holder, the candidates, and any request for it."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from controller_core.controller.role import role_znode
from controller_core.controller.role.requested_role import RequestedRole, parse_role_request
from controller_core.controller.role.role_znode import Holder
from controller_core.model.ids import BrokerId
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode, ProcessZnode
from controller_core.zk.registered_brokers import read_registered_brokers
from controller_core.zk.session import ZkNode, ZkSession

_NO_ID: Final = BrokerId(-1)


class NoCluster(Exception):
    """There is no Kafka cluster at the given address. The message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolePicture:
    """The role, and everybody who could have it."""

    controller: ZkNode | None
    """`/controller`."""
    kind: Holder
    holder: BrokerId | None
    """None if nobody has the role, or if its znode is unreadable."""
    epoch_node: ZkNode
    """`/controller_epoch`, read before the rest."""
    brokers: frozenset[BrokerId]
    processes: Mapping[BrokerId, ProcessZnode]
    """Live Kontroller processes, with their own descriptions."""
    request: RequestedRole | None

    def has(self, target: BrokerId | None) -> bool:
        """Return True if the target has the role: this process, or, for None, any broker."""
        if target is None:
            return self.kind is Holder.KAFKA_BROKER and self.holder is not None
        return self.kind is Holder.OTHER_KONTROLLER and self.holder == target

    def is_as_wanted(self, target: BrokerId | None) -> bool:
        """Return True if the target has the role for good.

        For a process, no request to Kafka's brokers may exist; for Kafka's brokers, one must."""
        asked = self.request is not None and self.request.holder is None
        return self.has(target) and asked == (target is None)

    @property
    def is_led(self) -> bool:
        """True if brokers have heard from the holder, as a Kontroller process reports. A broker in the role counts as
        leading."""
        if self.holder is None:
            return False
        process = self.processes.get(self.holder)
        return self.kind is Holder.KAFKA_BROKER or (process is not None and process.leads_under is not None)

    @property
    def holder_of_ours(self) -> BrokerId | None:
        """The Kontroller process that has the role."""
        return self.holder if self.kind is Holder.OTHER_KONTROLLER else None

    @property
    def best_process(self) -> BrokerId | None:
        """The best prepared Kontroller process among those that do not have the role."""
        others = [process for process in self.processes if process != self.holder]
        return min(others, key=self._rank_process, default=None)

    def _rank_process(self, process: BrokerId) -> tuple[bool, bool, BrokerId]:
        said = self.processes[process]
        return said.hindrance is not None, not said.is_hot, process

    @property
    def described(self) -> str:
        """The holder of the role, in words."""
        match self.kind:
            case Holder.NOBODY:
                return "nobody has the role"
            case Holder.KAFKA_BROKER:
                return f"Kafka's broker {self.holder} has the role"
            case Holder.KRAFT_CONTROLLER:
                return f"KRaft controller {self.holder} has the role"
            case _:
                return f"Kontroller process {self.holder} has the role"


async def look(zk: ZkSession) -> RolePicture:
    """Read the role and its candidates. Raises `NoCluster`, `MalformedZnode` of `/controller_epoch`, and `ZkError`."""
    brokers = await read_registered_brokers(zk)
    names = (await zk.children_many([paths.PROCESSES]))[0] or ()
    ids = [id_ for name in names if (id_ := paths.parse_broker_id(name)) is not None]
    wanted = [paths.CONTROLLER_EPOCH, paths.CONTROLLER, paths.ROLE_REQUEST, *map(paths.process, ids)]
    epoch_node, controller, request, *signs = await zk.read_many(wanted)
    if epoch_node is None:
        raise NoCluster(f"there is no {paths.CONTROLLER_EPOCH}: give the brokers' zookeeper.connect, with its chroot")
    codecs.decode_controller_epoch(epoch_node.data)
    holder = None
    with suppress(MalformedZnode):
        holder = codecs.decode_controller(controller.data) if controller is not None else None
    return RolePicture(
        controller=controller,
        kind=role_znode.find_holder(controller, own_id=_NO_ID, own_session=zk.session_id, registered_brokers=brokers),
        holder=holder,
        epoch_node=epoch_node,
        brokers=frozenset(brokers),
        processes={
            id_: said for id_, node in zip(ids, signs, strict=True) if (said := _read_process(id_, node)) is not None
        },
        request=parse_role_request(request),
    )


def _read_process(process: BrokerId, node: ZkNode | None) -> ProcessZnode | None:
    """Read the self-description of a process. If it is unreadable, the process counts as unfit."""
    if node is None:
        return None
    try:
        return codecs.decode_process(paths.process(process), node.data)
    except MalformedZnode as error:
        return ProcessZnode(whereabouts="an unknown place", is_hot=False, hindrance=str(error))
