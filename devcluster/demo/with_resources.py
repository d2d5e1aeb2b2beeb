"""The demo's second part: the same tasks and more, with custom resources and kubectl."""

from devcluster.demo.cluster import Cluster
from devcluster.demo.move import NEW, OLD, show_move
from devcluster.demo.operated import Operated

TOPIC = "orders"
MOVE = "orders-to-4-5-6"
ELECTION = "orders-after-restart"


def second_part(demo: Operated, cluster: Cluster) -> None:
    create_topic(demo, cluster)
    move_partition(demo, cluster)
    kill_broker(demo, cluster)
    elect_preferred(demo, cluster)
    kill_controller(demo, cluster)


def create_topic(demo: Operated, cluster: Cluster) -> None:
    demo.stage.step(
        "A topic, as a resource",
        "A KafkaTopic says what there should be; the operator writes it to ZooKeeper, the controller elects.",
    )
    demo.apply("topics.yaml")
    demo.wait_until_ready("kafkatopic", TOPIC)
    demo.show_resources("kafkatopic")
    cluster.produce(TOPIC)
    demo.stage.await_(cluster.is_served, f"every replica of {TOPIC} is in sync")


def move_partition(demo: Operated, cluster: Cluster) -> None:
    demo.stage.step(
        f"A PartitionReassignment {set(OLD)} -> {set(NEW)}", f"All of {TOPIC} moves. This is its partition 0."
    )
    show_move(
        demo.stage,
        lambda: cluster.place(TOPIC, 0),
        lambda: demo.apply("reassignment.yaml"),
        lambda: demo.has_ended("partitionreassignment", MOVE),
    )
    demo.show_resources("partitionreassignment")
    demo.wait_until_completed("partitionreassignment", MOVE)


def kill_broker(demo: Operated, cluster: Cluster) -> None:
    znodes, kafka = cluster.znodes, cluster.kafka
    leader = znodes.leader(TOPIC, 0)
    demo.stage.step(
        f"Broker {leader} is killed", "SIGKILL, and ZooKeeper ends the broker's session: that tells the controller."
    )
    kafka.broker(leader).kill()
    demo.stage.await_(lambda: znodes.leader(TOPIC, 0) not in (leader, -1), "another replica of the ISR leads")
    demo.stage.await_(lambda: demo.count_under_replicated() > 0, "the KafkaCluster counts what is under-replicated")
    demo.show_resources("kafkacluster")
    kafka.broker(leader).start()
    demo.stage.await_(cluster.is_served, f"{leader} is back in the ISR")


def elect_preferred(demo: Operated, cluster: Cluster) -> None:
    znodes = cluster.znodes
    demo.stage.step(
        "Preferred election", "Leadership is not where it should be after all that: a PreferredElection gives it back."
    )
    preferred = {partition: brokers[0] for partition, brokers in znodes.partitions(TOPIC).items()}
    elsewhere = [partition for partition, broker in preferred.items() if znodes.leader(TOPIC, partition) != broker]
    demo.stage.expect(bool(elsewhere), f"partitions {elsewhere} are not led by their preferred replicas")
    demo.apply("preferred-election.yaml")
    demo.stage.await_(
        lambda: all(znodes.leader(TOPIC, partition) == broker for partition, broker in preferred.items()),
        f"brokers {[preferred[partition] for partition in elsewhere]} lead them again",
    )
    demo.wait_until_completed("preferredelection", ELECTION)
    demo.show_resources("preferredelection")


def kill_controller(demo: Operated, cluster: Cluster) -> None:
    znodes, controller = cluster.znodes, cluster.controller
    ours = controller.controller_id
    demo.stage.step(
        "Our controller is killed",
        "SIGKILL, and its session ends. A broker's own controller fills in; ours takes the role back.",
    )
    controller.kill()
    demo.stage.await_(lambda: znodes.controller() not in (None, ours), "a Kafka broker is the controller")
    demo.stage.await_(lambda: demo.controller_kind() == "Kafka", "the KafkaCluster says so")
    controller.start()
    demo.stage.expect(
        znodes.controller() == ours, f"ours is the controller again, epoch {znodes.read('/controller_epoch')}"
    )
    demo.stage.await_(lambda: demo.controller_kind() == "Kontroller", "the KafkaCluster says so too")
