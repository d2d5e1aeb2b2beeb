"""A broker that answers errors, answers nonsense, closes the connection or hangs: only its own replicas suffer."""

import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from controller_core.wire.codecs.frames import RequestHead, make_frame
from devcluster.running.processes import wait_until
from devcluster.stand_ins.stand_in_broker import (
    Answer,
    is_there,
    make_version_answer,
    register,
    stand_in_broker,
    unregister,
)
from devcluster.stand_ins.told_versions import API_VERSIONS
from devcluster.waiting.vocabulary import wait_until_logged, wait_until_metric
from tests.real.controller.clusters import OurCluster

BAD_BROKER = 50
LEADER_AND_ISR, STOP_REPLICA = 4, 5
STALE_BROKER_EPOCH = 77


def answer_error(head: RequestHead) -> bytes:
    body = struct.pack(">h", STALE_BROKER_EPOCH)
    if head.api_key in (LEADER_AND_ISR, STOP_REPLICA):
        body += b"\x01"
    return make_frame(struct.pack(">ib", head.correlation_id, 0) + body + b"\x00")


def answer_nonsense(head: RequestHead) -> bytes:
    return make_frame(struct.pack(">ib", head.correlation_id, 0) + b"\xff" * 40)


def answer_somebody_else(head: RequestHead) -> bytes:
    return answer_error(replace(head, correlation_id=head.correlation_id + 1))


def close_unanswered(_: RequestHead) -> None:
    return None


@contextmanager
def bad_broker(cluster: OurCluster, answer: Answer) -> Iterator[threading.Event]:
    """Register a fake broker; the yielded event is set when the controller has sent it a request."""
    asked = threading.Event()

    def note_request(head: RequestHead) -> bytes | None:
        if head.api_key == API_VERSIONS:  # this only checks whether it is there
            return is_there(head)
        asked.set()
        return answer(head)

    with stand_in_broker(note_request) as port:
        register(cluster.znodes.client, BAD_BROKER, port)
        try:
            yield asked
        finally:
            unregister(cluster.znodes.client, BAD_BROKER)


@pytest.mark.parametrize("answer", [answer_error, answer_nonsense, answer_somebody_else, close_unanswered])
def test_the_other_brokers_are_served_beside_a_broker_that_answers(our_cluster: OurCluster, answer: Any) -> None:
    topic = f"beside-{answer.__name__}"
    with bad_broker(our_cluster, answer) as asked:
        wait_until(asked.is_set, "the controller asks the broker")
        our_cluster.serve_topic(topic, [[1, 2, 3]])
    assert our_cluster.znodes.controller() == our_cluster.controller.controller_id


@pytest.mark.parametrize(
    ("newest", "lack"), [({4: 4, 5: 2, 6: 6}, "up to version 4, and 5 is needed"), ({0: 12}, "and ZooKeeper")]
)
def test_a_broker_of_a_release_that_cannot_be_led_is_named_and_the_others_are_served(
    our_cluster: OurCluster, newest: dict[int, int], lack: str
) -> None:
    with stand_in_broker(make_version_answer(newest)) as port:
        register(our_cluster.znodes.client, BAD_BROKER, port)
        try:
            wait_until_metric(our_cluster.controller, "kontroller_unsupported_brokers", 1)
            wait_until_logged(our_cluster.controller.process, lack)
            our_cluster.serve_topic(f"beside-an-older-{len(newest)}", [[1, 2, 3]])
        finally:
            unregister(our_cluster.znodes.client, BAD_BROKER)
    wait_until_metric(our_cluster.controller, "kontroller_unsupported_brokers", 0)


def test_a_broker_with_the_controller_s_id_is_counted_and_the_others_are_served(our_cluster: OurCluster) -> None:
    own_id = our_cluster.controller.controller_id
    with stand_in_broker(is_there) as port:
        register(our_cluster.znodes.client, own_id, port)
        try:
            wait_until_metric(our_cluster.controller, "kontroller_own_id_taken", 1)
            wait_until_logged(our_cluster.controller.process, "under the controller's own id and is ignored")
            our_cluster.serve_topic("beside-the-own-id", [[1, 2, 3]])
        finally:
            unregister(our_cluster.znodes.client, own_id)
    wait_until_metric(our_cluster.controller, "kontroller_own_id_taken", 0)


def test_an_unreadable_registration_is_no_broker(our_cluster: OurCluster) -> None:
    path = f"/brokers/ids/{BAD_BROKER}"
    our_cluster.znodes.client.create(path, b"{not json", ephemeral=True)
    try:
        wait_until_logged(our_cluster.controller.process, "unreadable broker registration")
        our_cluster.serve_topic("beside-unreadable", [[1, 2, 3]])
    finally:
        our_cluster.znodes.client.delete(path)
