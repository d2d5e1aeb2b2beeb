"""The demo: six unmodified brokers, our controller and our operator, and kubectl, while a producer never stops.

`make demo` exits with 1 if anything was not as it should be. With KEEP=1 everything runs on until Ctrl-C.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from devcluster.demo.cluster import Demo, running_demo
from devcluster.demo.stage import Row, Stage
from devcluster.fill import fill_cache
from devcluster.load import AckedProducer, lost, read_back
from devcluster.processes import StartError, ending_on_sigterm, wait_until
from devcluster.run_folder import keeping
from devcluster.toolchain import BuildError, MissingToolError
from devcluster.tools import TOPICS, run_tool

TOPIC = "orders"
PARTITIONS = range(3)
MOVE = "orders-to-4-5-6"
ELECTION = "orders-after-restart"
OLD, NEW = (1, 2, 3), (4, 5, 6)


def main() -> int:
    """Runs the demo; returns the exit code."""
    fill_cache()
    stage = Stage()
    with ExitStack() as stack:
        stack.enter_context(ending_on_sigterm())
        demo = stack.enter_context(running_demo(stage))
        create_topic(demo)
        with AckedProducer(demo.kafka.bootstrap_servers, TOPIC) as producer:
            wait_until(lambda: producer.acknowledged_count > 0, "the first acknowledgement", deadline_s=30)
            stage.say("A producer with acks=all has started, and will not stop before the end.")
            move_partition(demo)
            stop_broker(demo)
            kill_broker(demo)
            elect_preferred(demo)
            kill_controller(demo)
        code = stage.close(count_messages(demo, producer))
        if keeping():
            _stay(demo)
        return code


def create_topic(demo: Demo) -> None:
    demo.stage.step(
        "A topic",
        "A KafkaTopic says what there should be; the operator writes it to ZooKeeper, the controller elects.",
    )
    demo.apply("topics.yaml")
    demo.wait_until_ready("kafkatopic", TOPIC)
    demo.show_resources("kafkatopic")
    demo.stage.await_(lambda: demo.znodes.is_served(TOPIC, PARTITIONS), f"every replica of {TOPIC} is in sync")


def move_partition(demo: Demo) -> None:
    demo.stage.step(
        f"Reassignment {set(OLD)} -> {set(NEW)}",
        f"A PartitionReassignment of {TOPIC}. This is its partition 0, on its way through the steps; AR is written last.",
    )
    with demo.stage.watching(demo.znodes, TOPIC, 0) as rows:
        demo.apply("reassignment.yaml")
        demo.stage.show_rows(
            rows, lambda: demo.phase("partitionreassignment", MOVE) in ("Completed", "Failed"), explain_move
        )
    demo.show_resources("partitionreassignment")
    both = tuple(sorted(OLD + NEW))
    demo.stage.expect(rows[0].assigned == OLD, f"it began with AR {set(OLD)}")
    demo.stage.expect(any(row.assigned == both for row in rows), "AR was OAR + RAR while the new replicas caught up")
    demo.stage.expect(
        all(set(NEW) <= set(row.isr) for row in rows if row.leader in NEW),
        "the leader moved only when all of RAR was in sync",
    )
    demo.stage.expect(
        rows[-1].content == (NEW, rows[-1].leader, NEW) and rows[-1].leader in NEW, f"it ended with AR {set(NEW)}"
    )
    demo.stage.expect(demo.phase("partitionreassignment", MOVE) == "Completed", "the resource says Completed")


def stop_broker(demo: Demo) -> None:
    leader = demo.znodes.leader(TOPIC, 0)
    demo.stage.step(
        f"Broker {leader} stops in good order",
        "SIGTERM: it asks our controller to take its leaderships away, and only then stops.",
    )
    demo.kafka.broker(leader).stop()
    demo.stage.expect(
        demo.znodes.leader(TOPIC, 0) not in (leader, -1), f"broker {demo.znodes.leader(TOPIC, 0)} leads now"
    )
    demo.stage.expect(leader not in demo.znodes.isr(TOPIC, 0), f"{leader} left the ISR before it went")
    demo.kafka.broker(leader).start()
    demo.stage.await_(lambda: demo.znodes.is_served(TOPIC, PARTITIONS), f"{leader} is back in the ISR")


def kill_broker(demo: Demo) -> None:
    leader = demo.znodes.leader(TOPIC, 0)
    demo.stage.step(
        f"Broker {leader} is killed", "SIGKILL: ZooKeeper tells the controller when the broker's session ends."
    )
    demo.kafka.broker(leader).kill()
    demo.stage.await_(lambda: demo.znodes.leader(TOPIC, 0) not in (leader, -1), "another replica of the ISR leads")
    demo.stage.await_(lambda: demo.under_replicated() > 0, "the KafkaCluster counts what is under-replicated")
    demo.show_resources("kafkacluster")
    demo.kafka.broker(leader).start()
    demo.stage.await_(lambda: demo.znodes.is_served(TOPIC, PARTITIONS), f"{leader} is back in the ISR")


def elect_preferred(demo: Demo) -> None:
    demo.stage.step(
        "Preferred election", "Leadership is not where it should be after all that: a PreferredElection gives it back."
    )
    preferred = {partition: demo.znodes.assigned(TOPIC, partition)[0] for partition in PARTITIONS}
    elsewhere = [partition for partition in PARTITIONS if demo.znodes.leader(TOPIC, partition) != preferred[partition]]
    demo.stage.expect(bool(elsewhere), f"partitions {elsewhere} are not led by their preferred replicas")
    demo.apply("preferred-election.yaml")
    demo.stage.await_(
        lambda: all(demo.znodes.leader(TOPIC, partition) == preferred[partition] for partition in PARTITIONS),
        f"brokers {[preferred[partition] for partition in elsewhere]} lead them again",
    )
    demo.stage.await_(lambda: demo.phase("preferredelection", ELECTION) == "Completed", "the resource says Completed")
    demo.show_resources("preferredelection")


def kill_controller(demo: Demo) -> None:
    ours = demo.controller.controller_id
    demo.stage.step(
        "Our controller is killed",
        "SIGKILL. When its session ends, a broker's own controller fills in; ours takes the role back.",
    )
    demo.controller.kill()
    demo.stage.await_(lambda: demo.znodes.controller() not in (None, ours), "a Kafka broker is the controller")
    demo.stage.await_(
        lambda: demo.status("kafkacluster", "demo").get("controller", {}).get("kind") == "Kafka",
        "the KafkaCluster says so",
    )
    demo.controller.start()
    demo.stage.expect(
        demo.znodes.controller() == ours, f"ours is the controller again, epoch {demo.znodes.read('/controller_epoch')}"
    )
    demo.stage.await_(
        lambda: demo.status("kafkacluster", "demo").get("controller", {}).get("kind") == "Kontroller",
        "the KafkaCluster says so too",
    )


def count_messages(demo: Demo, producer: AckedProducer) -> list[str]:
    demo.stage.step("The count", "Every message that was ever acknowledged is read back.")
    report = producer.stop()
    missing = lost(report.acknowledged, read_back(demo.kafka.bootstrap_servers, TOPIC))
    described = run_tool(TOPICS, "--bootstrap-server", demo.kafka.bootstrap_servers, "--describe", "--topic", TOPIC)
    demo.stage.show(f"kafka-topics.sh --describe --topic {TOPIC}", described.stdout)
    demo.stage.expect(described.returncode == 0, "Kafka's own tool describes the topic")
    demo.stage.expect(len(report.acknowledged) > 0, f"{len(report.acknowledged)} messages were acknowledged")
    demo.stage.expect(not missing, f"{len(missing)} of them are lost")
    demo.stage.expect(not report.errors, f"{len(report.errors)} sends failed")
    demo.stage.expect(
        "unexpected error" not in demo.controller_log(), "the controller met nothing that it did not understand"
    )
    return [
        f"{len(report.acknowledged)} messages acknowledged, {len(missing)} lost, {len(report.errors)} sends failed.",
        f"The longest time without an acknowledgement was {report.longest_pause_s:.1f} s (a session has to end first).",
    ]


def explain_move(row: Row, before: Row | None) -> str:
    """Which step of the specification a row shows."""
    if before is None:
        return "initial state"
    if row.assigned != before.assigned:
        return "AR = OAR + RAR (step 2)" if set(row.assigned) > set(NEW) else "AR = RAR, written last (step 10)"
    if row.leader != before.leader:
        return (
            "a leader in RAR (step 7)"
            if set(row.isr) > set(NEW)
            else "a leader in RAR (step 7), OAR - RAR out of the ISR (step 8)"
        )
    if set(row.isr) == set(NEW):
        return "OAR - RAR out of the ISR (step 8)"
    return "all of RAR in the ISR (step 4)" if set(row.isr) >= set(NEW) else "new replicas join the ISR"


@contextmanager
def _ignoring_interrupt() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        print()


def _stay(demo: Demo) -> None:
    demo.stage.console.print("\n[bold]It all runs on until Ctrl-C.[/] In another terminal:\n")
    demo.stage.console.print(f"  export KUBECONFIG={demo.kubernetes.kubeconfig}")
    demo.stage.console.print(f"  alias kubectl={demo.kubectl_path}")
    demo.stage.console.print("  kubectl --namespace kafka get kontroller")
    demo.stage.console.print("  kubectl --namespace kafka explain kpr.spec")
    demo.stage.console.print(f"\n  brokers {demo.kafka.bootstrap_servers}\n  ZooKeeper {demo.kafka.zookeeper_connect}")
    demo.stage.console.print(f"  logs {demo.folder.path / 'logs'}")
    with _ignoring_interrupt():
        signal.pause()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (BuildError, MissingToolError, StartError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
