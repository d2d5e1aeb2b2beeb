"""onControllerFailover: the state that a new controller finds, keeps, and continues from.

The role is taken away by deleting `/controller`, like at the end of a session. Work for the next controller is written
in the same transaction.
"""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from kazoo.client import TransactionRequest

from controller_core.wire.messages import ErrorCode
from devcluster.clients.requests import ConnectionClosed
from devcluster.clients.znodes import PREFERRED_ELECTION, REASSIGN_PARTITIONS
from devcluster.waiting.vocabulary import wait_until_controlled_by
from tests.real.conformance.clusters import ConformanceCluster
from tests.real.conformance.set_ups import ours_only

ISR_CHANGES = "/isr_change_notification"
LOG_DIR_EVENTS = "/log_dir_event_notification"
FENCED = "the role is lost: /controller_epoch is no longer at version"


def begin_a_new_term_with(
    cluster: ConformanceCluster,
    created: Mapping[str, object] | None = None,
    written: Mapping[str, object] | None = None,
    deleted: Sequence[str] = (),
) -> None:
    """Take the role away and write znodes, all at once, and wait for the next controller."""
    before = cluster.controller_epoch()
    transaction: TransactionRequest = cluster.znodes.client.transaction()
    for path in ("/controller", *deleted):
        transaction.delete(path)
    for path, content in (created or {}).items():
        transaction.create(path, b"" if content is None else json.dumps(content).encode())
    for path, content in (written or {}).items():
        transaction.set_data(path, json.dumps(content).encode())
    failures = [outcome for outcome in transaction.commit() if isinstance(outcome, Exception)]
    assert failures == []
    cluster.wait_for_a_term_after(before)


def test_a_new_controller_raises_the_epoch_and_changes_no_partition(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("lasting", [[1, 2, 3], [2, 3], [3]])
    before = [cluster.read_state("lasting", partition) for partition in range(3)]
    epoch = cluster.controller_epoch()
    cluster.begin_a_new_term()
    cluster.serve_topic("first-of-its-term", [[1, 2]])
    assert cluster.controller_epoch() > epoch
    assert [cluster.read_state("lasting", partition) for partition in range(3)] == before
    assert cluster.read_state("first-of-its-term").controller_epoch == cluster.controller_epoch()


@ours_only
def test_what_a_deposed_controller_writes_too_late_is_refused(cluster: ConformanceCluster) -> None:
    """It is stopped with a decided and unwritten ISR, while another one takes the role and does not know of it.

    The state has the version that the write expects, and the session lives on: only the epoch is another one.
    """
    own = cluster.own_controller
    assert own is not None
    cluster.serve_topic("written-late", [[1, 2]])
    before = cluster.read_state("written-late")
    fenced_before = own.process.log_path.read_text(errors="replace").count(FENCED)
    own.kill(ends_session=False)
    own.start_stepping("/brokers/topics/written-late/")
    epoch = cluster.controller_epoch()
    with ThreadPoolExecutor(max_workers=1) as client:
        answer = client.submit(cluster.ask_controller, cluster.alter_partition("written-late", [1]))
        cluster.wait(lambda: own.process.is_stopped, "it is about to write")
        cluster.znodes.client.delete("/controller")
        cluster.wait(lambda: cluster.controller_epoch() > epoch, "a broker has the role")
        assert cluster.znodes.controller() in cluster.kafka.brokers
        own.resume()
        with suppress(ConnectionClosed):  # a resigning controller may close the connection before this answer
            assert answer.result().error_code is ErrorCode.not_controller
    wait_until_controlled_by(cluster.znodes, own.controller_id)
    assert cluster.read_state("written-late") == before
    assert own.process.log_path.read_text(errors="replace").count(FENCED) == fenced_before + 1
    own.restart_whole()
    assert cluster.read_state("written-late") == before


def test_every_broker_learns_of_the_new_controller(cluster: ConformanceCluster) -> None:
    cluster.begin_a_new_term()
    for broker in cluster.znodes.live_brokers():
        cluster.wait(
            lambda broker=broker: cluster.metadata(broker).controller_id == cluster.znodes.controller(),  # type: ignore[misc]  # a lambda with a default
            f"{broker} knows the new controller",
        )


def test_leaders_go_on_changing_isrs_under_the_new_controller(cluster: ConformanceCluster) -> None:
    """A state keeps the epoch of the controller that wrote it until another one writes it."""
    cluster.serve_topic("handed-on", [[1, 2, 3]])
    cluster.begin_a_new_term()
    cluster.leave_in_isr("handed-on", [1, 2])
    assert cluster.read_state("handed-on").controller_epoch == cluster.controller_epoch()
    cluster.wait_until_everybody_knows("handed-on")


def test_a_topic_that_was_created_without_a_controller_is_served(cluster: ConformanceCluster) -> None:
    topic = {"version": 3, "partitions": {"0": [2, 1]}, "adding_replicas": {}, "removing_replicas": {}}
    begin_a_new_term_with(cluster, {"/brokers/topics/orphan": {**topic, "topic_id": "AAAAAAAAQACAAAAAAAAAAQ"}})
    cluster.wait_until_served("orphan")
    assert cluster.znodes.read("/brokers/topics/orphan")["topic_id"] == "AAAAAAAAQACAAAAAAAAAAQ"


def test_partitions_that_were_added_without_a_controller_are_served(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("grown", [[1, 2]])
    content = cluster.znodes.read("/brokers/topics/grown")
    content["partitions"]["1"] = [3, 1]
    begin_a_new_term_with(cluster, written={"/brokers/topics/grown": content})
    cluster.wait_until_served("grown", 2)


def test_a_topic_that_was_marked_without_a_controller_is_deleted(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("condemned", [[1, 2, 3]])
    begin_a_new_term_with(cluster, {"/admin/delete_topics/condemned": None})
    cluster.wait_until_gone("/brokers/topics/condemned", "/admin/delete_topics/condemned")


def test_a_deletion_that_was_cut_short_is_ended(cluster: ConformanceCluster) -> None:
    """The former controller had removed the states already, and nothing records the leaders (KAFKA-6650)."""
    cluster.serve_topic("cut-short", [[1, 2, 3]])
    partition = "/brokers/topics/cut-short/partitions/0"
    begin_a_new_term_with(cluster, {"/admin/delete_topics/cut-short": None}, deleted=(f"{partition}/state", partition))
    cluster.wait_until_gone("/brokers/topics/cut-short", "/admin/delete_topics/cut-short")
    cluster.wait_until_only_replicas_have_logs("cut-short")


def test_a_reassignment_and_an_election_that_were_asked_for_without_a_controller_are_done(
    cluster: ConformanceCluster,
) -> None:
    cluster.serve_topic("pending", [[1, 2], [2, 1]])
    cluster.znodes.reassign({("pending", 1): [1, 2]})
    cluster.wait_until_moved("pending", [1, 2], partition=1)
    assert cluster.znodes.leader("pending", 1) == 2, "another order of the replicas moves no leader"
    election = {"version": 1, "partitions": [{"topic": "pending", "partition": 1}]}
    target = {"version": 1, "partitions": [{"topic": "pending", "partition": 0, "replicas": [3, 2]}]}
    begin_a_new_term_with(cluster, {PREFERRED_ELECTION: election, REASSIGN_PARTITIONS: target})
    cluster.wait_until_moved("pending", [3, 2])
    cluster.wait_until_led("pending", 1, partition=1)
    cluster.wait_until_gone(PREFERRED_ELECTION)


def test_a_running_reassignment_goes_on_under_the_next_controller(cluster: ConformanceCluster) -> None:
    first, second, third = cluster.order
    cluster.serve_topic("resumed", [[first, second]])
    with cluster.pause_broker(third):
        assert cluster.reassign(("resumed", 0, [third, first]))[0].name == "none"
        assert cluster.list_reassignments(("resumed", 0))
        cluster.begin_a_new_term()
        assert cluster.znodes.leader("resumed", 0) == first
    cluster.wait_until_moved("resumed", [third, first])
    cluster.wait_until_only_replicas_have_logs("resumed")


def test_notifications_for_the_former_controller_are_removed(cluster: ConformanceCluster) -> None:
    change = {"version": 1, "partitions": [{"topic": "lasting", "partition": 0}]}
    old = {
        f"{ISR_CHANGES}/isr_change_9000000000": change,
        f"{LOG_DIR_EVENTS}/log_dir_event_9000000000": {"version": 1, "broker": 1, "event": 1},
    }
    begin_a_new_term_with(cluster, old)
    cluster.wait_until_gone(*old)


def test_a_state_that_a_later_controller_wrote_is_not_touched(cluster: ConformanceCluster) -> None:
    """The controller that finds one is a zombie: it elects nobody."""
    cluster.serve_topic("later", [[2, 1]])
    cluster.znodes.reassign({("later", 0): [1, 2]})
    cluster.wait_until_moved("later", [1, 2])
    path = "/brokers/topics/later/partitions/0/state"
    content = cluster.znodes.read(path)
    cluster.znodes.client.set(path, json.dumps({**content, "controller_epoch": 10**9}).encode())
    before = cluster.read_state("later")
    cluster.znodes.elect_preferred([("later", 0)])
    cluster.wait_until_gone(PREFERRED_ELECTION)
    assert cluster.read_state("later") == before
    cluster.znodes.client.set(path, json.dumps(content).encode())
    cluster.znodes.elect_preferred([("later", 0)])
    cluster.wait_until_led("later", 1)
