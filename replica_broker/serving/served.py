"""All APIs that this broker serves.

Most are answered in their newest version (`OwnedApi`). Metadata, Fetch and ApiVersions differ too much between
versions, so they get each request in its own one (`LocalApi`). Requests do not wait for each other, because a fetch may
wait for half a second, and a produce for its followers; only answers with metadata are made one after the other.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from kio.schema.alter_replica_log_dirs.v2.request import AlterReplicaLogDirsRequest
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.list_transactions.v1.request import ListTransactionsRequest
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.admin.authorizing import split_nodes
from controller_core.admin.authorizing.authorization import Authorization
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
from replica_broker.serving.answering import (
    ApiMaker,
    FindRights,
    MayFollow,
    authorize_parts,
    ignore_rights,
    let_all_follow,
    make_async,
    make_awaitable,
    pass_rights,
)
from replica_broker.serving.authorizing import split_partitions
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
    authorization: Authorization | None = None
    """The ACLs; None if every client may do everything."""
    counters: BrokerCounters = field(default_factory=BrokerCounters)

    def apis(self, listener: str, may_follow: MayFollow = let_all_follow) -> list[Api]:
        """Return all APIs, with answers for one listener: they have the brokers' addresses on it."""
        make = ApiMaker(self.counters, self.authorization, may_follow)
        apis: list[OwnedApi[Any] | LocalApi[Any]] = [
            *self._make_owned_apis(make, listener),
            *self._make_local_apis(make, listener),
        ]
        versions = [*(api.versions for api in apis), api_versions.VERSIONS]

        def on_api_versions(request: RequestPayload) -> ResponsePayload:
            return api_versions.on_api_versions(self.node, versions, request)

        return [
            *apis,
            make.make_local_api(
                api_versions.VERSIONS, make_async(on_api_versions), unsupported=api_versions.answer_unsupported
            ),
        ]

    def _make_owned_apis(self, make: ApiMaker, listener: str) -> list[OwnedApi[Any]]:
        node, replicas, owned = self.node, self.replicas, make.make_owned_api
        return [
            *([] if self.control is None else _make_commands(make, self.control)),
            owned(
                produce.VERSIONS,
                authorize_parts(
                    split_partitions.produce, lambda asked: produce.on_produce(node, listener, replicas, asked)
                ),
                produce.LIMITS,
            ),
            owned(
                list_offsets.VERSIONS,
                authorize_parts(
                    split_partitions.list_offsets,
                    lambda asked: list_offsets.on_list_offsets(replicas, asked),
                ),
                list_offsets.LIMITS,
            ),
            owned(
                leader_epochs.VERSIONS,
                authorize_parts(
                    split_partitions.find_epoch_ends,
                    make_awaitable(lambda asked: leader_epochs.on_offset_for_leader_epoch(replicas, asked)),
                ),
                leader_epochs.LIMITS,
            ),
            owned(
                delete_records.VERSIONS,
                authorize_parts(
                    split_partitions.delete_records, lambda asked: delete_records.on_delete_records(replicas, asked)
                ),
                delete_records.LIMITS,
            ),
            owned(producer_ids.VERSIONS, self._on_init_producer_id, RequestLimits()),
            owned(
                coordinators.VERSIONS,
                pass_rights(lambda asked, rights: coordinators.on_find_coordinator(node, listener, asked, rights)),
                RequestLimits(),
            ),
            owned(
                txn_markers.VERSIONS,
                ignore_rights(lambda asked: txn_markers.on_write_txn_markers(replicas, asked)),
                _MANY,
                refuse=txn_markers.refuse,
            ),
            owned(
                describe_producers.VERSIONS,
                authorize_parts(
                    split_nodes.describe_producers,
                    make_awaitable(lambda asked: describe_producers.on_describe_producers(replicas, asked)),
                ),
                describe_producers.LIMITS,
            ),
            owned(
                describe.DESCRIBE_CLUSTER,
                pass_rights(lambda asked, rights: describe.on_describe_cluster(node, listener, asked, rights)),
                RequestLimits(),
            ),
            owned(
                describe.DESCRIBE_CONFIGS,
                authorize_parts(
                    split_nodes.describe_configs,
                    make_awaitable(lambda asked: describe.on_describe_configs(node, self.configs, asked)),
                ),
                _MANY,
            ),
            *([] if self.zk is None else [_make_alter_configs_api(make, node, self.zk)]),
            owned(
                log_dirs.VERSIONS,
                make_async(lambda asked: log_dirs.on_describe_log_dirs(self.directories, replicas, asked)),
                _MANY,
                refuse=as_broker.REFUSALS[log_dirs.VERSIONS.key],
            ),
            owned(Versions(ListGroupsRequest, oldest=0), make_async(as_broker.no_groups), RequestLimits()),
            owned(Versions(ListTransactionsRequest, oldest=0), make_async(as_broker.no_transactions), RequestLimits()),
            owned(
                Versions(AlterReplicaLogDirsRequest, oldest=1),
                make_async(as_broker.no_such_log_dir),
                _MANY,
                refuse=as_broker.no_log_dir_for,
            ),
        ]

    def _make_local_apis(self, make: ApiMaker, listener: str) -> list[LocalApi[Any]]:
        async def on_metadata(request: RequestPayload, find_rights: FindRights) -> ResponsePayload:
            return await metadata.on_metadata(self.node, listener, request, await find_rights())

        async def on_fetch(request: RequestPayload, find_rights: FindRights) -> ResponsePayload:
            return await fetch.on_fetch(self.node, listener, self.replicas, request, find_rights)

        return [
            *([] if self.control is None else [_make_leader_and_isr(make, self.control)]),
            make.make_local_api(metadata.VERSIONS, on_metadata, _MANY, may_wait=False),
            make.make_local_api(fetch.VERSIONS, on_fetch, fetch.LIMITS),
        ]

    async def _on_init_producer_id(self, request: Any, find_rights: FindRights) -> ResponsePayload:
        return await producer_ids.on_init_producer_id(self.producer_ids, request, await find_rights())


def _make_commands(make: ApiMaker, obeyed: control.Control) -> list[OwnedApi[Any]]:
    """Return the commands whose response has the same form in all versions. The gate judges their senders."""
    return [
        make.make_owned_api(
            older_versions.STOP_REPLICA,
            ignore_rights(obeyed.on_stop_replica),
            control.LIMITS,
            refuse=control.refuse_stop_replica,
        ),
        make.make_owned_api(
            older_versions.UPDATE_METADATA,
            ignore_rights(obeyed.on_update_metadata),
            control.LIMITS,
            refuse=control.refuse_update_metadata,
        ),
    ]


def _make_leader_and_isr(make: ApiMaker, obeyed: control.Control) -> LocalApi[Any]:
    versions = older_versions.LEADER_AND_ISR

    async def on_leader_and_isr(request: RequestPayload, _: FindRights) -> ResponsePayload:
        asked = versions.lift(request)
        response = await obeyed.on_leader_and_isr(asked)
        return older_versions.leader_and_isr_answer(asked, response, int(request.__version__))

    return make.make_local_api(versions, on_leader_and_isr, control.LIMITS, refuse=control.refuse_leader_and_isr)


def _make_alter_configs_api(make: ApiMaker, node: Node, zk: ZkSession) -> OwnedApi[Any]:
    return make.make_owned_api(
        alter_configs.VERSIONS,
        authorize_parts(split_nodes.alter_configs, lambda asked: alter_configs.on_alter_configs(node, zk, asked)),
        _MANY,
    )
