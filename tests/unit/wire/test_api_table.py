"""Every API has its place in the one table, and the process answers as the table says."""

from typing import Final

from kio.schema.index import api_key_map

from controller_core.model.access import Need
from controller_core.process.listening import ListenerAssembly
from controller_core.process.run import SERVED_APIS
from controller_core.wire.api_table import (
    API_TABLE,
    HANDLING,
    NEED_FOR,
    REFUSED_API_KEYS,
    Handling,
    Purpose,
    Row,
    need_of,
)
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


def list_names(*purposes: Purpose) -> set[str]:
    return {row.name for row in API_TABLE if row.purpose in purposes}


def test_every_api_has_a_purpose_and_every_purpose_a_right() -> None:
    assert Row._field_defaults == {}, "a new API without a purpose is an error"
    assert {row.purpose for row in API_TABLE} == set(Purpose) == NEED_FOR.keys()
    assert {row.key: need_of(row.key) for row in API_TABLE} == {row.key: NEED_FOR[row.purpose] for row in API_TABLE}


def test_an_api_that_is_not_in_the_table_needs_the_right_that_fewest_have() -> None:
    assert need_of(LAST_OF_3_9 + 1) is Need.BROKER


def test_an_api_whose_name_says_that_it_changes_something_does_not_count_as_reading() -> None:
    changing = (
        "Alter",
        "Create",
        "Delete",
        "Update",
        "Elect",
        "Write",
        "Add",
        "Remove",
        "Renew",
        "Expire",
        "Unregister",
    )
    named = {row.name for row in API_TABLE if row.name.startswith(changing) or row.name.endswith("Delete")}
    clients = {"AddPartitionsToTxn", "AddOffsetsToTxn"}
    assert named & list_names(Purpose.CONNECTS, Purpose.READS, Purpose.PRODUCES, Purpose.CONSUMES) == clients
    questions = ("Describe", "List", "Find", "Get", "Fetch", "Metadata", "OffsetFetch", "OffsetForLeaderEpoch")
    assert all(name.startswith(questions) or name.endswith("Describe") for name in list_names(Purpose.READS))


def test_servers_requests_to_each_other_are_never_relayed() -> None:
    servers = {row for row in API_TABLE if row.purpose in (Purpose.COMMANDS, Purpose.JOINS_SERVERS)}
    assert {row.handling for row in servers} == {Handling.REFUSE}
    assert {row.handling for row in API_TABLE if row.purpose is Purpose.REPORTS} == {Handling.OWN}


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
