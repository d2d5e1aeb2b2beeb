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
from replica_broker.serving.answering import count_requests, make_async, make_local_api, make_owned_api
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
        in_newest, of_any_version = self._make_owned_apis(listener), self._make_local_apis(listener)
        versions = [
            *(api.versions for api in in_newest),
            *(api.versions for api in of_any_version),
            api_versions.VERSIONS,
        ]

        async def on_api_versions(request: RequestPayload) -> ResponsePayload:
            return api_versions.on_api_versions(self.node, versions, request)

        return [
            *(count_requests(api, self.counters) for api in in_newest),
            *(count_requests(api, self.counters) for api in of_any_version),
            count_requests(
                make_local_api(api_versions.VERSIONS, on_api_versions, unsupported=api_versions.answer_unsupported),
                self.counters,
            ),
        ]

    def _make_owned_apis(self, listener: str) -> list[OwnedApi[Any]]:
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
            *(make_owned_api(versions, answer, control.LIMITS) for versions, answer in commands),
            make_owned_api(
                produce.VERSIONS, lambda asked: produce.on_produce(node, listener, replicas, asked), produce.LIMITS
            ),
            make_owned_api(
                list_offsets.VERSIONS,
                make_async(lambda asked: list_offsets.on_list_offsets(replicas, asked)),
                list_offsets.LIMITS,
            ),
            make_owned_api(
                leader_epochs.VERSIONS,
                make_async(lambda asked: leader_epochs.on_offset_for_leader_epoch(replicas, asked)),
                leader_epochs.LIMITS,
            ),
            make_owned_api(
                delete_records.VERSIONS,
                lambda asked: delete_records.on_delete_records(replicas, asked),
                delete_records.LIMITS,
            ),
            make_owned_api(
                producer_ids.VERSIONS,
                lambda asked: producer_ids.on_init_producer_id(self.producer_ids, asked),
                RequestLimits(),
            ),
            make_owned_api(
                coordinators.VERSIONS,
                make_async(lambda asked: coordinators.on_find_coordinator(node, listener, asked)),
                RequestLimits(),
            ),
            make_owned_api(
                txn_markers.VERSIONS, lambda asked: txn_markers.on_write_txn_markers(replicas, asked), _MANY
            ),
            make_owned_api(
                describe_producers.VERSIONS,
                make_async(lambda asked: describe_producers.on_describe_producers(replicas, asked)),
                describe_producers.LIMITS,
            ),
            make_owned_api(
                describe.DESCRIBE_CLUSTER,
                make_async(lambda asked: describe.on_describe_cluster(node, listener, asked)),
                RequestLimits(),
            ),
            make_owned_api(
                describe.DESCRIBE_CONFIGS,
                make_async(lambda asked: describe.on_describe_configs(node, self.configs, asked)),
                _MANY,
            ),
            *([] if self.zk is None else [_make_alter_configs_api(node, self.zk)]),
            make_owned_api(
                log_dirs.VERSIONS,
                make_async(lambda asked: log_dirs.on_describe_log_dirs(self.directories, replicas, asked)),
                _MANY,
            ),
            make_owned_api(Versions(ListGroupsRequest, oldest=0), make_async(as_broker.no_groups), RequestLimits()),
            make_owned_api(
                Versions(ListTransactionsRequest, oldest=0), make_async(as_broker.no_transactions), RequestLimits()
            ),
            make_owned_api(
                Versions(AlterReplicaLogDirsRequest, oldest=1), make_async(as_broker.no_such_log_dir), _MANY
            ),
        ]

    def _make_local_apis(self, listener: str) -> list[LocalApi[Any]]:
        async def on_metadata(request: RequestPayload) -> ResponsePayload:
            return metadata.on_metadata(self.node, listener, request)

        async def on_fetch(request: RequestPayload) -> ResponsePayload:
            return await fetch.on_fetch(self.node, listener, self.replicas, request)

        return [
            *([] if self.control is None else [_leader_and_isr(self.control)]),
            make_local_api(metadata.VERSIONS, on_metadata, _MANY),
            make_local_api(fetch.VERSIONS, on_fetch, fetch.LIMITS),
        ]


def _leader_and_isr(obeyed: control.Control) -> LocalApi[Any]:
    versions = older_versions.LEADER_AND_ISR

    async def on_leader_and_isr(request: RequestPayload) -> ResponsePayload:
        asked = versions.lift(request)
        response = await obeyed.on_leader_and_isr(asked)
        return older_versions.leader_and_isr_answer(asked, response, int(request.__version__))

    return make_local_api(versions, on_leader_and_isr, control.LIMITS)


def _make_alter_configs_api(node: Node, zk: ZkSession) -> OwnedApi[Any]:
    return make_owned_api(alter_configs.VERSIONS, lambda asked: alter_configs.on_alter_configs(node, zk, asked), _MANY)
