"""Set-ups of the conformance clusters, and which tests run on which of them.

A set-up is a transport, a login, ACLs and a release of the brokers. It does not change the procedures of a controller.
So every test runs on `HOME`, in PLAINTEXT, under Kafka's controller and under ours. The tests in `PROBES` run on all
other set-ups as well: at least one for each API and direction. The tests in `OLDER_PROCEDURES` also run on each older
release, because brokers of an older release speak other versions of the APIs in question.

Brokers, the controller and clients speak the same protocol at all listeners. With ACLs, clients get their rights from
ACLs, and brokers and the controller are super users. Without authentication everybody is the same anonymous user, who
gets all rights from ACLs.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pytest

from controller_core.zk import paths
from devcluster.building.java import KAFKA_VERSION, OLDER_VERSIONS
from devcluster.clients.identity import Identity
from devcluster.clusters.listeners import ListenerNames
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_kafka import ALICE, CLIENT, SecuredKafka
from devcluster.clusters.zookeeper import ZooKeeper, open_client

KAFKA, OURS = "kafka", "kontroller"
_SHOWN_AT_LOGIN: Final = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
_RESOURCES: Final = ("Cluster/kafka-cluster", "Topic/*", "Group/*", "TransactionalId/*", "DelegationToken/*")


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUp:
    """The security of all listeners of a cluster, and the release of its brokers."""

    protocol: str
    mechanism: str = ""
    """The SASL mechanism of everybody; empty without SASL."""
    client_auth: str = "none"
    """The value of `ssl.client.auth`."""
    asks_acls: bool = False
    release: str = KAFKA_VERSION
    """The release of the brokers."""

    @property
    def listeners(self) -> ListenerNames:
        """Brokers and clients have a listener each."""
        names = ("INTERNAL", "CLIENT")
        return ListenerNames(inter_broker=names[0], clients=names[1], protocols=dict.fromkeys(names, self.protocol))

    @property
    def principal(self) -> str:
        """The principal of the clients."""
        if self.mechanism:
            return f"User:{ALICE}"
        return f"User:CN={CLIENT}" if self.client_auth == "required" else "User:ANONYMOUS"

    def kafka(
        self, folder: RunFolder, zookeeper: ZooKeeper, *, name: str, properties: Mapping[str, object]
    ) -> SecuredKafka:
        """Return a cluster that has no brokers yet."""
        return SecuredKafka(
            folder,
            zookeeper,
            brokers=0,
            properties=properties,
            name=name,
            listeners=self.listeners,
            mechanism=self.mechanism or "SCRAM-SHA-512",
            client_auth=self.client_auth,
            authorizes=self.asks_acls,
            version=self.release,
        )

    def identity(self, kafka: SecuredKafka) -> Identity:
        """Return the identity of the clients."""
        return kafka.identity(self.listeners.clients, mechanism=self.mechanism)

    def controllers_properties(self, kafka: SecuredKafka) -> str:
        """Write the properties file of our controller, and return its path."""
        authorizer = {name.replace(".", "_"): value for name, value in kafka.authorizer.items()}
        return str(
            kafka.write_properties(
                sasl_enabled_mechanisms=_SHOWN_AT_LOGIN,
                ssl_client_auth=self.client_auth,
                **(authorizer if self.asks_acls else {}),
            )
        )

    def allow(self, kafka: SecuredKafka) -> None:
        """Give the clients all rights. Call it before the brokers start."""
        if self.asks_acls:
            everything = {"principal": self.principal, "permissionType": "Allow", "operation": "All", "host": "*"}
            data = json.dumps({"version": 1, "acls": [everything]}).encode()
            with open_client(kafka.zookeeper_connect) as client:
                for resource in _RESOURCES:
                    client.create(f"{paths.ACLS}/{resource}", data, makepath=True)


SECURED: Final = {
    "PLAINTEXT-acls": SetUp(protocol="PLAINTEXT", asks_acls=True),
    "SSL": SetUp(protocol="SSL"),
    "SSL-acls": SetUp(protocol="SSL", asks_acls=True),
    "certificates": SetUp(protocol="SSL", client_auth="required"),
    "certificates-acls": SetUp(protocol="SSL", client_auth="required", asks_acls=True),
    "SASL_PLAINTEXT": SetUp(protocol="SASL_PLAINTEXT", mechanism="PLAIN"),
    "SASL_PLAINTEXT-acls": SetUp(protocol="SASL_PLAINTEXT", mechanism="SCRAM-SHA-256", asks_acls=True),
    "SASL_SSL": SetUp(protocol="SASL_SSL", mechanism="SCRAM-SHA-512"),
    "SASL_SSL-acls": SetUp(protocol="SASL_SSL", mechanism="PLAIN", asks_acls=True),
}
"""The secured set-ups by name. PLAINTEXT without ACLs has no `SetUp`."""
SECURED_OURS: Final = tuple(f"{OURS}-{name}" for name in SECURED)
SECURED_KAFKAS: Final = tuple(f"{KAFKA}-{name}" for name, set_up in SECURED.items() if set_up.asks_acls)
"""Each protocol once, with ACLs: these set-ups do all that those without ACLs do, and more."""

SECURED_OLDER: Final = {
    f"SASL_SSL-acls-{release}": SetUp(protocol="SASL_SSL", mechanism="SCRAM-SHA-512", asks_acls=True, release=release)
    for release in OLDER_VERSIONS
}
"""Set-ups with TLS, a login and ACLs for brokers of each older release."""
SET_UPS: Final = SECURED | SECURED_OLDER
OLDER_OURS: Final = tuple(f"{OURS}-{name}" for name in (*OLDER_VERSIONS, *SECURED_OLDER))
"""Our controller with brokers of each older release, in PLAINTEXT and secured."""

HOME: Final = (KAFKA, OURS)
"""PLAINTEXT without ACLs, with brokers of the usual release: all tests run here."""

PROBES: Final = (
    # Client to controller: CreateTopics, CreatePartitions, DeleteTopics, by librdkafka, a tool, and our commands
    "tools/test_librdkafka.py::test_topics_are_created_described_grown_and_deleted",
    "tools/test_java_tools.py::test_topics_are_created_listed_described_grown_and_deleted",
    "client/test_commands.py::test_a_topic_lives_from_its_creation_to_its_deletion",
    # AlterPartitionReassignments and ListPartitionReassignments, by kafka-python
    "tools/test_kafka_python.py::test_partitions_are_reassigned_and_the_list_of_what_runs_is_empty_again",
    # ElectLeaders
    "tools/test_librdkafka.py::test_preferred_leaders_are_elected",
    # AlterUserScramCredentials
    "tools/test_librdkafka.py::test_users_get_and_lose_credentials",
    # UpdateFeatures, by our own client, which finds the controller behind the brokers
    "test_controller_is_found.py::test_a_feature_that_no_broker_supports_is_refused_in_the_same_words",
    # IncrementalAlterConfigs and DescribeConfigs, which brokers answer although the client also knows our controller
    "tools/test_librdkafka.py::test_configurations_are_altered_and_described",
    # Quotas belong to the user who has logged in
    "test_mutation_quotas.py::test_the_quota_that_is_most_about_a_client_counts_alone",
    # Broker to controller: AlterPartition, ControlledShutdown, AllocateProducerIds
    "procedures/test_isr.py::test_a_replica_that_catches_up_is_taken_in_by_its_leader",
    "procedures/test_shutdown.py::test_a_stop_in_good_order_interrupts_no_producer_and_then_its_leaderships_are_given_back",
    "procedures/test_producer_ids.py::test_an_idempotent_producer_is_served",
    # Controller to broker: UpdateMetadata, StopReplica; and LeaderAndIsr, when brokers die and return under load
    "test_section_1_protocol.py::test_every_broker_answers_clients_with_the_state_that_zookeeper_has",
    "procedures/test_deletion.py::test_a_deleted_topic_leaves_no_znode_no_log_and_no_metadata",
    "procedures/test_brokers.py::test_nothing_that_was_acknowledged_is_lost",
    # All connections of a new term
    "procedures/test_failover.py::test_every_broker_learns_of_the_new_controller",
)
"""The tests that run on every set-up, by file below this folder. `client/test_acls.py` runs on all those with ACLs."""

OLDER_PROCEDURES: Final = (
    # Control requests, and who is asked instead of the controller
    "test_section_1_protocol.py::test_a_controller_of_an_older_epoch_is_fenced",
    "test_section_1_protocol.py::test_a_request_for_a_former_life_of_a_broker_is_refused",
    "test_section_1_protocol.py::test_whoever_is_not_the_controller_says_so",
    "test_section_1_protocol.py::test_a_shutdown_asked_of_a_former_controller_is_refused_as_of_an_old_epoch",
    # LeaderAndIsr without a recovery state (before 3.2), AlterPartition by topic names (before 3.3)
    "procedures/test_brokers.py::test_a_topic_that_allows_it_gets_an_unclean_leader_that_recovers",
    "procedures/test_brokers.py::test_a_broker_that_returns_follows_and_joins_the_isr_again",
    "procedures/test_brokers.py::test_a_broker_that_returns_is_sent_everything",
    # A leader before 3.3 may take in a broker that is shutting down
    "procedures/test_shutdown.py::test_the_broker_that_shuts_down_learns_who_leads_now",
    "procedures/test_shutdown.py::test_when_it_is_back_it_serves_like_any_other",
    # Errors of LeaderAndIsr
    "procedures/test_log_dirs.py::test_a_leader_whose_log_is_lost_is_replaced_and_leaves_the_isr",
    "procedures/test_log_dirs.py::test_a_broker_with_a_repaired_directory_follows_and_joins_again",
    # Moves, with throttles in the words of the release
    "procedures/test_reassignment.py::test_a_partition_moves_while_it_is_written_to_and_nothing_is_lost",
    "tools/test_java_tools.py::test_a_running_reassignment_is_listed_and_cancelled",
    # /feature in version 2, which brokers before 3.3 do not write
    "test_features.py::test_a_new_controller_enables_what_was_disabled_and_rewrites_an_old_version",
    # APIs that the oldest releases lack
    "tools/test_all_brokers_asked.py::test_a_transactional_id_is_listed_once",
    "tools/test_kafka_python.py::test_the_cluster_is_described",
    "client/test_admin_client.py::test_a_topic_is_created_by_counts_described_grown_and_deleted",
)
"""The tests that also run in PLAINTEXT with brokers of each older release."""

ours_only: Final = pytest.mark.parametrize("started_cluster", [OURS], indirect=True, scope="session")
"""The mark of tests that hold for our controller alone: it does better than Kafka's, or differs on purpose."""

with_acls: Final = pytest.mark.parametrize(
    "started_cluster",
    [name for name in (*SECURED_OURS, *SECURED_KAFKAS, *OLDER_OURS) if "-acls" in name],
    indirect=True,
    scope="session",
)
"""The mark of tests that need ACLs: they run on all set-ups that have them."""


def set_ups_of(test: str) -> tuple[str, ...]:
    """Return the parameters of `started_cluster` for a test, such as `procedures/test_isr.py::test_x`."""
    if test in PROBES:
        return (*HOME, *SECURED_OURS, *SECURED_KAFKAS, *OLDER_OURS)
    if test in OLDER_PROCEDURES:
        return (*HOME, *(f"{OURS}-{release}" for release in OLDER_VERSIONS))
    return HOME


def release_of(name: str) -> str:
    """Return the release of the brokers of a set-up; `name` does not include the controller."""
    if name in SET_UPS:
        return SET_UPS[name].release
    return name if name in OLDER_VERSIONS else KAFKA_VERSION


def mark_since(release: str, why: str) -> pytest.MarkDecorator:
    """Mark a test that holds for brokers of a release, such as `3.4`, and newer ones; `why`: what older ones lack."""
    return pytest.mark.since(release, why)


def skip_on_older_releases(items: Sequence[pytest.Item], fixture: str) -> None:
    """Skip tests that are marked `since` a newer release than that of their cluster, which `fixture` starts."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        name = str(callspec.params.get(fixture, "")) if callspec is not None else ""
        release = release_of(name.removeprefix(f"{OURS}-").removeprefix(f"{KAFKA}-"))
        for marker in item.iter_markers("since"):
            first, why = marker.args
            if _numbers(release) < _numbers(first):
                item.add_marker(pytest.mark.skip(reason=f"brokers of Kafka {release}: {why} (since {first})"))


def _numbers(release: str) -> list[int]:
    return [int(number) for number in release.split(".")]
