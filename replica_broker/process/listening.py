"""The listeners of a broker process, for both designs, and the authorization of their callers."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from controller_core.admin.authorizing.acl_gate import NEEDED, AclGate, Needed
from controller_core.model.authorization.acls import Operation
from controller_core.process.connections import make_secured_listeners
from controller_core.wire.limits.descriptors import fit_to_descriptors
from controller_core.wire.limits.gate import Gate
from controller_core.wire.limits.memory import fit_to_memory, memory_limit
from controller_core.wire.listener.listener import Acceptor, Listener
from controller_core.zk.scram_credentials import ZkScramCredentials
from controller_core.zk.session import ZkSession
from replica_broker.membership.controller_hosts import ControllerHosts
from replica_broker.process.settings import BrokerProcessSettings
from replica_broker.serving.authorizing.command_gate import CommandGate
from replica_broker.serving.served import RULES, Served

NEEDED_OF_BROKERS: Final[Mapping[int, Needed]] = {
    4: Needed(Operation.CLUSTER_ACTION),  # LeaderAndIsr
    5: Needed(Operation.CLUSTER_ACTION),  # StopReplica
    6: Needed(Operation.CLUSTER_ACTION),  # UpdateMetadata
    27: Needed(Operation.CLUSTER_ACTION, or_else=Operation.ALTER),  # WriteTxnMarkers
    34: NEEDED[34],
    35: NEEDED[35],
}
"""The right on the cluster that each API of brokers needs."""


def make_listener(
    settings: BrokerProcessSettings, served: Served, zk: ZkSession, controller: ControllerHosts
) -> Listener:
    """Return the listener that serves all addresses of the settings. Raises `InvalidSettings`."""
    secured = make_secured_listeners(settings.properties, settings.binds, ZkScramCredentials(zk))
    by_address = CommandGate(controller, served.node.list_hosts, settings.controller_cidr)
    acceptors = [
        Acceptor(
            host=bind.host,
            port=bind.port,
            apis=served.apis(bind.listener, by_address.may_follow),
            relay_targets=None,
            secured=secured.get(bind.listener),
        )
        for bind in settings.binds
    ]
    limits = fit_to_memory(fit_to_descriptors(settings.listener_limits), memory_limit())
    return Listener(
        acceptors,
        limits=replace(limits, max_own_request_bytes=limits.max_frame_bytes),
        gate=_make_gate(served, by_address),
        rules=RULES,
        refusals=served.counters.refusals,
    )


def _make_gate(served: Served, by_address: CommandGate) -> Gate:
    """Return the gate that judges callers of commands: by ACLs, and without a login also by their address."""
    if served.authorization is None:
        return by_address
    return AclGate(served.authorization, by_address, _is_in_charge, NEEDED_OF_BROKERS)


async def _is_in_charge() -> bool:
    """Return False: a broker is not the controller."""
    return False
