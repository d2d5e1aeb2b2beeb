"""The counts of transactions, of ZooKeeper's own counters, and of requests."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from bench.designs.clusters import topics_of
from bench.designs.counting.counted_server import CountedApi
from bench.designs.counting.leaderships import NOBODY, Leaderships
from bench.designs.counting.message_counts import MessageCounts, read_received
from bench.designs.counting.transaction_log import Change, Operation, Transaction
from bench.designs.counting.writes import Writes, kind_of
from bench.designs.counting.zookeeper_counters import counters_of
from controller_core.model.authorization.principal import NOBODY_IN_PARTICULAR, Caller
from controller_core.wire.codecs.frames import RequestHead
from simulation.fast_loop import run_fast

MNTR = (
    "zk_version\t3.8.4\nzk_packets_received\t{requests}\nzk_watch_count\t6\nzk_cnt_v2_read_per_namespace\t{read}\n"
    "zk_cnt_v3_read_per_namespace\t9\nzk_sum_node_created_watch_count\t1\nzk_sum_node_deleted_watch_count\t2\n"
    "zk_sum_node_changed_watch_count\t{changed}\nzk_sum_node_children_watch_count\t4\n"
)


def transaction(time_ms: int, *operations: tuple[Change, str, bytes], **more: Any) -> Transaction:
    made = tuple(Operation(change=change, path=path, data=data) for change, path, data in operations)
    return Transaction(session=1, time_ms=time_ms, operations=made, **more)


def fold_transactions(transactions: Iterable[Transaction]) -> Leaderships:
    found = Leaderships()
    found.take(transactions)
    return found


def test_in_v2_a_leader_goes_with_its_session_and_another_is_elected() -> None:
    leader, isr = "/v2/brokers/topics/orders/0/leader", "/v2/brokers/topics/orders/0/ISR"
    course = [
        transaction(10, ("create", leader, b"1,1"), ("create", isr, b"1")),
        transaction(20, ("check", "/v2/brokers/topics/orders/0/epoch", b""), ("set data", isr, b"1,2,3")),
        transaction(30, ("delete", leader, b""), is_of_sessions=True),
    ]
    found = fold_transactions(course)
    assert (found.partitions["orders-0"].leader, found.elections, found.led_ms) == (NOBODY, 1, 10)
    found.take([transaction(40, ("create", leader, b"2,2")), transaction(50, ("set data", isr, b"2,3"))])
    orders = found.partitions["orders-0"]
    assert (orders.leader, orders.in_sync, found.elections) == (2, frozenset({2, 3}), 2)
    assert (found.led_ms, found.changed_ms) == (40, 50)


def test_in_v3_a_state_has_both_and_an_isr_alone_is_no_election() -> None:
    state = "/v3/brokers/topics/orders/partitions/0/state"

    def encode_state(leader: int, *isr: int) -> bytes:
        return json.dumps({"leader": leader, "isr": isr}).encode()

    found = fold_transactions([
        transaction(10, ("create", state, encode_state(1, 1, 2, 3))),
        transaction(20, ("set data", state, encode_state(1, 1, 2))),
        transaction(30, ("set data", state, encode_state(2, 2))),
        transaction(40, ("set data", state, encode_state(3, 3)), is_refused=True),
    ])  # fmt: skip
    assert (found.partitions["orders-0"].leader, found.elections) == (2, 2)
    assert (found.led_ms, found.changed_ms) == (30, 30)


def test_writes_are_counted_by_what_the_znodes_are() -> None:
    writes = Writes()
    writes.take([
        transaction(5, is_of_sessions=True),
        transaction(10, ("create", "/v2/brokers/topics/t/7/leader", b""), ("check", "/v2/brokers/topics/t/7/epoch", b"")),
        transaction(20, is_refused=True),
        transaction(30, ("create", "/v2/brokers/state/2/request-0000000012", b"")),
    ])  # fmt: skip
    assert (writes.first_ms, writes.transactions, writes.refused) == (5, 3, 1)
    assert writes.znodes == {"create leader": 1, "create request": 1}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v2/brokers/topics/orders/0/ISR", "ISR"),
        ("/v2/brokers/topics/orders/0", "partition"),
        ("/v2/brokers/topics/orders-12", "topic"),
        ("/v2/brokers/partitions_reassigned/orders/0", "partitions_reassigned"),
        ("/v3/brokers/topics/orders/partitions/3/state", "state"),
        ("/v3/brokers/topics/orders/partitions/3", "partition"),
        ("/v3/brokers/ids/1", "ids"),
        ("/v3", "root"),
    ],
)
def test_a_znode_is_named_by_what_it_is(path: str, kind: str) -> None:
    assert kind_of(path) == kind


def test_of_zookeeper_what_was_counted_meanwhile_and_the_watches_of_the_moment() -> None:
    before = counters_of(MNTR.format(requests=10, read=5, changed=3), "/v2")
    since = counters_of(MNTR.format(requests=30, read=11, changed=8), "/v2").subtract(before)
    assert (since.requests, since.znodes_read, since.notifications, since.watches) == (20, 6, 5, 6)
    assert counters_of(MNTR.format(requests=10, read=5, changed=3), "/other").znodes_read == 0


def test_requests_are_counted_over_all_lives_of_a_server(tmp_path: Path) -> None:
    file = tmp_path / "received"
    assert read_received(file) == {}
    for _ in range(2):
        with MessageCounts(file) as counts:
            counts.count(4)
            counts.count(99)
    assert read_received(file) == {"LeaderAndIsr": 2, "API 99": 2}


class Echo:
    key = 6
    limits: Any = None
    may_wait = False

    async def respond(self, head: RequestHead, content: bytes, caller: Caller = NOBODY_IN_PARTICULAR) -> bytes:
        return content

    async def make_refusal(self, head: RequestHead, content: bytes | None, error_code: Any) -> bytes | None:
        return b"refused"


def test_a_request_is_counted_and_answered_as_ever(tmp_path: Path) -> None:
    head: Any = None
    with MessageCounts(tmp_path / "received") as counts:
        api = CountedApi(Echo(), counts)
        assert run_fast(api.respond(head, b"asked")) == b"asked"
        assert run_fast(api.make_refusal(head, b"asked", head)) == b"refused"
    assert read_received(tmp_path / "received") == {"UpdateMetadata": 1}


def test_leaders_and_replicas_are_spread_evenly() -> None:
    topics = topics_of(7, in_topic=3, replication_factor=2)
    assert [len(each) for each in topics.values()] == [3, 3, 1]
    assert [replicas for each in topics.values() for replicas in each][:4] == [(1, 2), (2, 3), (3, 1), (1, 2)]
