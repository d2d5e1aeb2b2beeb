"""The answer about requests: who asked for what, by the records of any journal."""

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kontroller.history.answers.outages.incidents import incidents
from kontroller.history.answers.requests import limit_requests, requests
from kontroller.history.schemas import EVENTS, INCIDENTS, REQUESTS
from tests.spark.answers.literals import Answers, Histories, Row, answers, event, make_time, partition, span
from tests.spark.histories import make_events

ALICE = {"principal": "User:alice", "address": "10.0.0.7"}
YEAR = 366 * 86_400


def ask(when: float, seq: int, outcome: str = "done", **more: Any) -> Row:
    said = {"api": "CreateTopics", "outcome": outcome, **ALICE, "resources": [{"type": "topic", "name": "t"}]} | more
    return event(when, "request", seq=seq, request=json.dumps(said))


NONSENSE = [
    "[]", "7", "null", "{", "{\"principal\": {\"a\": [1]}, \"outcome\": 3, \"count\": \"many\"}",
    "{\"resources\": \"none\", \"more_resources\": -5}", "{\"resources\": [7, null, {\"name\": 3}]}",
]  # fmt: skip
CLUSTERS = {
    "usual": [
        span(0, 100, first_seq=1),
        ask(5, 10, client_id="admin", more_resources=4),
        ask(6, 11, "refused", error="POLICY_VIOLATION", count=30),
        event(7, "topic", seq=12),
    ],
    "hostile": [
        span(0, 100, first_seq=1),
        ask(5, 2, principal="<b>\u202e" * 5000, resources=[{"type": "topic", "name": "n" * 9000}] * 500, count=9 * 10**18),
        ask(6, 3, "<script>"),
        *(event(7, "request", seq=4 + number, request=text) for number, text in enumerate([*NONSENSE, None])),
    ],
    "clocks": [
        span(0, 100, first_seq=1, last_seq=9, span=1),
        span(500, 600, first_seq=20, last_seq=40, span=2),
        span(500, 500, first_seq=41, last_seq=50, span=3, has_time=False),
        ask(50, 5),
        ask(50_000, 6),
        ask(-50_000, 7),
        ask(300, 15),  # in unknown time
        ask(9_000_000, 16),
        ask(700, 60),  # after the last sign of life
        ask(3 * YEAR, 61),
    ],
    "no clock": [ask(5, 1)],
    "flood": [
        span(0, 10_000, first_seq=1),
        *(ask(100 + number, 10 + number, "refused", count=2) for number in range(200)),
        ask(5, 5),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def histories(spark: SparkSession) -> Histories:
    return Histories(spark, CLUSTERS)


@pytest.fixture(scope="module")
def asked(histories: Histories) -> Answers:
    return answers(requests(histories.events, histories.spans), REQUESTS)


def test_a_request_has_its_client_its_resources_and_its_outcome(asked: Answers) -> None:
    assert asked("usual", "event_time", "principal", "address", "client_id", "api", "outcome", "error", "count") == [
        (make_time(5), "User:alice", "10.0.0.7", "admin", "CreateTopics", "done", "", 1),
        (make_time(6), "User:alice", "10.0.0.7", "", "CreateTopics", "refused", "POLICY_VIOLATION", 30),
    ]
    assert asked("usual", "resources", "resources_total") == [(["topic t"], 5), (["topic t"], 1)]


def test_texts_and_numbers_that_strangers_choose_are_bounded(asked: Answers) -> None:
    (principal, resources, count), (outcome, *_) = (
        asked("hostile", "principal", "resources", "count")[0],
        asked("hostile", "outcome")[1],
    )
    assert len(principal) == 250
    assert (len(resources), len(resources[0]), count) == (20, 250, 1_000_000_000)
    assert outcome == "unknown"


def test_records_that_are_no_audit_records_disturb_nothing(asked: Answers) -> None:
    nonsense = asked("hostile", "outcome", "count", "resources_total")[2:]
    assert len(nonsense) == len(NONSENSE) + 1
    assert {(outcome, count) for outcome, count, _ in nonsense} == {("unknown", 1)}
    assert all(0 <= total <= 3 for *_, total in nonsense)


def test_a_time_is_dropped_if_its_clock_is_not_trusted(asked: Answers) -> None:
    assert asked("clocks", "seq", "event_time") == [
        (5, make_time(50)),
        (6, None),
        (7, None),
        (15, make_time(300)),
        (16, None),
        (60, make_time(700)),
        (61, None),
    ]
    assert asked("no clock", "event_time") == [(None,)]


def test_a_flood_leaves_the_newest_requests_of_each_outcome_and_a_sum(histories: Histories) -> None:
    found = answers(limit_requests(requests(histories.events, histories.spans), 10), REQUESTS)
    assert found("flood", "seq", "outcome", "principal", "count") == [
        (5, "done", "User:alice", 1),
        (199, "refused", None, 380),
        *((seq, "refused", "User:alice", 2) for seq in range(200, 210)),
    ]
    assert found("flood", "event_time")[1] == (make_time(289),)
    assert found("usual", "count") == [(1,), (30,)]


def test_the_client_of_a_line_reaches_the_event_and_the_incident(spark: SparkSession) -> None:
    record = {
        "v": 1, "cluster_id": "c", "controller_id": 1, "controller_epoch": 1, "event_time_us": 5, "correlation_id": "1-1",
    }  # fmt: skip
    lines = [
        {"seq": 0, "kind": "controller_alive", "cause": "elect_leaders", **ALICE},
        {"seq": 1, "kind": "request", "cause": "elect_leaders", "request": {"api": "ElectLeaders", "outcome": "done"}},
    ]
    events = make_events(spark, [json.dumps(record | line).encode() + b"\n" for line in lines]).orderBy("seq").collect()
    assert [(row.principal, row.address) for row in events] == [("User:alice", "10.0.0.7"), (None, None)]
    assert json.loads(events[1].request) == {"api": "ElectLeaders", "outcome": "done"}
    assert EVENTS.schema.fieldNames() == list(events[0].asDict())
    down = partition((0, {}), (10, {"leader": -1, "cause": "elect_leaders", **ALICE}), (20, {}), until=30)
    rows = Histories(spark, {"c": down})
    found = answers(incidents(rows.partitions, rows.spans), INCIDENTS)
    assert found("c", "principal", "address") == [("User:alice", "10.0.0.7")]
