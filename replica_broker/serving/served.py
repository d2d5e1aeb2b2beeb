"""All APIs that this broker serves.

Most are answered in their newest version (`OwnedApi`). Metadata, Fetch and ApiVersions differ too much between
versions, so they get each request in its own one (`LocalApi`). Requests do not wait for each other: a fetch may wait
for half a second, and a produce for its followers.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from kio.schema.alter_replica_log_dirs.v2.request import AlterReplicaLogDirsRequest
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.list_transactions.v1.request import ListTransactionsRequest
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.admin.cluster import as_broker
from controller_core.model.access import Need
from controller_core.wire.api_table import HANDLING, Handling
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.limits.request_limits import RequestLimits
from controller_core.wire.listener.listener import Api, ListenerRules, LocalApi, OwnedApi
from controller_core.wire.listener.owned_api import CONTROL_API_KEYS
from controller_core.zk.session import ZkSession
from replica_broker.counters import BrokerCounters
from replica_broker.log.directories import LogDirectories
from replica_broker.membership.node import Node
from replica_broker.replicas.replicas import Replicas
from replica_broker.serving import (
    api_versions,
    coordinators,
    describe,
    describe_producers,
    fetch,
    log_dirs,
    metadata,
    produce,
    producer_ids,
)
from replica_broker.serving.answering import at_once, counted, local, owned
from replica_broker.serving.commands import control, older_versions, txn_markers
from replica_broker.serving.configs import alter_configs
from replica_broker.serving.offsets import delete_records, leader_epochs, list_offsets

RULES: Final = ListenerRules(
    need_of=lambda api_key: Need.BROKER if api_key in CONTROL_API_KEYS else Need.NOBODY,
    handling=dict.fromkeys(HANDLING, Handling.RELAY),
    why_not_passed_on="is not served by this broker: ApiVersions lists the served ones",
)
"""Commands have a separate memory budget, so that client messages cannot delay them."""

_MANY: Final = RequestLimits(max_items=1_000_000, max_entries=1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """The sources of the answers."""

    node: Node
    replicas: Replicas
    directories: LogDirectories
    control: control.Control | None
    """None in design v2, which has no controller."""
    configs: describe.DescribedConfigs
    producer_ids: producer_ids.ProducerIds
    zk: ZkSession | None
    """The ZooKeeper session for altering configurations; None if only the process is configured."""
    counters: BrokerCounters = field(default_factory=BrokerCounters)

    def apis(self, listener: str) -> list[Api]:
        """Return all APIs, with answers for one listener: they have the brokers' addresses on it."""
        in_newest, of_any_version = self._in_newest(listener), self._of_any_version(listener)
        versions = [
            *(api.versions for api in in_newest),
            *(api.versions for api in of_any_version),
            api_versions.VERSIONS,
        ]

        async def on_api_versions(request: RequestPayload) -> ResponsePayload:
            return api_versions.on_api_versions(self.node, versions, request)

        return [
            *(counted(api, self.counters) for api in in_newest),
            *(counted(api, self.counters) for api in of_any_version),
            counted(local(api_versions.VERSIONS, on_api_versions, unsupported=api_versions.unsupported), self.counters),
        ]

    def _in_newest(self, listener: str) -> list[OwnedApi[Any]]:
        node, replicas = self.node, self.replicas
        obeyed = self.control
        commands = (
            (
                (older_versions.STOP_REPLICA, obeyed.on_stop_replica),
                (older_versions.UPDATE_METADATA, obeyed.on_update_metadata),
            )
            if obeyed is not None
            else ()
        )
        return [
            *(owned(versions, answer, control.LIMITS) for versions, answer in commands),
            owned(produce.VERSIONS, lambda asked: produce.on_produce(node, listener, replicas, asked), produce.LIMITS),
            owned(
                list_offsets.VERSIONS,
                at_once(lambda asked: list_offsets.on_list_offsets(replicas, asked)),
                list_offsets.LIMITS,
            ),
            owned(
                leader_epochs.VERSIONS,
                at_once(lambda asked: leader_epochs.on_offset_for_leader_epoch(replicas, asked)),
                leader_epochs.LIMITS,
            ),
            owned(
                delete_records.VERSIONS,
                lambda asked: delete_records.on_delete_records(replicas, asked),
                delete_records.LIMITS,
            ),
            owned(
                producer_ids.VERSIONS,
                lambda asked: producer_ids.on_init_producer_id(self.producer_ids, asked),
                RequestLimits(),
            ),
            owned(
                coordinators.VERSIONS,
                at_once(lambda asked: coordinators.on_find_coordinator(node, listener, asked)),
                RequestLimits(),
            ),
            owned(txn_markers.VERSIONS, lambda asked: txn_markers.on_write_txn_markers(replicas, asked), _MANY),
            owned(
                describe_producers.VERSIONS,
                at_once(lambda asked: describe_producers.on_describe_producers(replicas, asked)),
                describe_producers.LIMITS,
            ),
            owned(
                describe.DESCRIBE_CLUSTER,
                at_once(lambda asked: describe.on_describe_cluster(node, listener, asked)),
                RequestLimits(),
            ),
            owned(
                describe.DESCRIBE_CONFIGS,
                at_once(lambda asked: describe.on_describe_configs(node, self.configs, asked)),
                _MANY,
            ),
            *([] if self.zk is None else [_altering(node, self.zk)]),
            owned(
                log_dirs.VERSIONS,
                at_once(lambda asked: log_dirs.on_describe_log_dirs(self.directories, replicas, asked)),
                _MANY,
            ),
            owned(Versions(ListGroupsRequest, oldest=0), at_once(as_broker.no_groups), RequestLimits()),
            owned(Versions(ListTransactionsRequest, oldest=0), at_once(as_broker.no_transactions), RequestLimits()),
            owned(Versions(AlterReplicaLogDirsRequest, oldest=1), at_once(as_broker.no_such_log_dir), _MANY),
        ]

    def _of_any_version(self, listener: str) -> list[LocalApi[Any]]:
        async def on_metadata(request: RequestPayload) -> ResponsePayload:
            return metadata.on_metadata(self.node, listener, request)

        async def on_fetch(request: RequestPayload) -> ResponsePayload:
            return await fetch.on_fetch(self.node, listener, self.replicas, request)

        return [
            *([] if self.control is None else [_leader_and_isr(self.control)]),
            local(metadata.VERSIONS, on_metadata, _MANY),
            local(fetch.VERSIONS, on_fetch, fetch.LIMITS),
        ]


def _leader_and_isr(obeyed: control.Control) -> LocalApi[Any]:
    versions = older_versions.LEADER_AND_ISR

    async def on_leader_and_isr(request: RequestPayload) -> ResponsePayload:
        asked = versions.lifted(request)
        response = await obeyed.on_leader_and_isr(asked)
        return older_versions.leader_and_isr_answer(asked, response, int(request.__version__))

    return local(versions, on_leader_and_isr, control.LIMITS)


def _altering(node: Node, zk: ZkSession) -> OwnedApi[Any]:
    return owned(alter_configs.VERSIONS, lambda asked: alter_configs.on_alter_configs(node, zk, asked), _MANY)
