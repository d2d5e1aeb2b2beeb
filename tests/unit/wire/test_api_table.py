"""Every API has its place in the one table, and the process answers as the table says."""

from typing import Final

from kio.schema.index import api_key_map

from controller_core.model.access import Need
from controller_core.process.listening import ListenerAssembly
from controller_core.process.run import SERVED_APIS
from controller_core.wire.api_table import API_TABLE, HANDLING, REFUSED_API_KEYS, Handling, need_of
from controller_core.wire.limits.request_limits import LIMITS
from simulation.zookeeper import SimulatedZooKeeper

LAST_OF_3_9: Final = 87
NOT_IN_KIO: Final = {4: "LeaderAndIsr", 5: "StopReplica", 6: "UpdateMetadata", 7: "ControlledShutdown"}
RENAMED: Final = {74: "ListClientMetricsResources"}
"""The new name in Kafka 4, which kio uses."""
OF_ZOOKEEPER_BROKERS: Final = {*range(52), 56, 57, 58, 60, 61, 65, 66, 67, 68, 69}
"""The requests in `common/message/*.json` of Kafka 3.9.1 with the listener `zkBroker`."""


async def never(*_: object) -> object:
    raise AssertionError("nothing is asked")


def test_every_api_of_kafka_3_9_is_in_the_table_exactly_once() -> None:
    assert [row.key for row in API_TABLE] == list(range(LAST_OF_3_9 + 1))


def test_they_have_their_names() -> None:
    for key, name, *_ in API_TABLE:
        if key in NOT_IN_KIO or key in RENAMED:
            assert name == (NOT_IN_KIO | RENAMED)[key]
        else:
            assert name.lower() == str(api_key_map[key]).replace("_", "")


def test_what_no_broker_of_a_zookeeper_cluster_takes_is_refused() -> None:
    assert set(HANDLING) - OF_ZOOKEEPER_BROKERS <= REFUSED_API_KEYS
    assert {4, 5, 6, 27, 52, 53, 54, 55, 58} & OF_ZOOKEEPER_BROKERS == REFUSED_API_KEYS & OF_ZOOKEEPER_BROKERS


def test_the_process_answers_what_the_table_says_that_it_answers() -> None:
    assembly = ListenerAssembly(SimulatedZooKeeper().session(), SERVED_APIS, lambda: None, never)  # type: ignore[arg-type]
    answered = [api.key for api in assembly.make_apis("PLAINTEXT")]
    assert sorted(answered) == [key for key, handling in HANDLING.items() if handling is Handling.OWN]


def test_what_is_answered_here_has_limits_and_nothing_else_is_judged_by_them() -> None:
    own = {key for key, handling in HANDLING.items() if handling is Handling.OWN}
    assert LIMITS.keys() == own


CHANGES_BROKERS: Final = {
    "DeleteRecords", "CreateAcls", "DeleteAcls", "CreateDelegationToken", "RenewDelegationToken",
    "ExpireDelegationToken", "DeleteGroups", "OffsetDelete", "AlterClientQuotas",
}  # fmt: skip
"""The requests that tools of administrators send to any broker, and so also to the controller."""


def test_what_changes_the_cluster_is_not_passed_on_for_everybody() -> None:
    judged = {row.name for row in API_TABLE if row.handling is Handling.RELAY and row.need is not Need.NOBODY}
    assert judged == CHANGES_BROKERS


def test_nothing_that_reads_or_writes_records_needs_an_administrator() -> None:
    names = {"Produce", "Fetch", "OffsetCommit", "JoinGroup", "EndTxn", "InitProducerId", "DescribeConfigs"}
    assert {row.need for row in API_TABLE if row.name in names} == {Need.NOBODY}
    assert need_of(LAST_OF_3_9 + 1) is Need.NOBODY
