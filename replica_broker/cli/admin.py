"""`kontroller-broker admin`: topic administration for design v2, which has no controller to ask."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kontroller.cli.endings import failure, usage_error

if TYPE_CHECKING:
    from controller_core.model.ids import BrokerId, TopicPartition
    from replica_broker.v2.admin.topics import Admin

commands = typer.Typer(help="Administer the topics of a design v2 cluster through ZooKeeper.", no_args_is_help=True)

Zookeeper = Annotated[
    str,
    typer.Option(
        envvar="KONTROLLER_ZOOKEEPER", help="ZooKeeper servers and chroot: HOST:PORT[,HOST:PORT...][/chroot]."
    ),
]
Properties = Annotated[
    Path | None,
    typer.Option(
        envvar="KONTROLLER_PROPERTIES",
        help=(
            "File with the security settings of the ZooKeeper connection: a stock broker's server.properties, or a "
            "part of it."
        ),
        show_default=False,
    ),
]
TimeoutMs = Annotated[int, typer.Option(min=1, help="Milliseconds that the brokers have to finish the operation.")]
Bound = Annotated[int, typer.Option(min=1, help="Maximum number of state change requests in the queue of one broker.")]
Topic = Annotated[str, typer.Option(help="Name of the topic.")]
Partition = Annotated[int, typer.Option(min=0, help="Number of the partition.")]
Replicas = Annotated[
    str, typer.Option(help="Comma-separated broker ids, such as 1,2,3. The first one is the preferred leader.")
]

_TIMEOUT_MS = 30_000
_BOUND = 1_000


@commands.command("create-topic")
def create_topic(
    zookeeper: Zookeeper,
    topic: Topic,
    partitions: Annotated[int, typer.Option(min=1)] = 1,
    replication_factor: Annotated[int, typer.Option(min=1)] = 1,
    replica_assignment: Annotated[
        str,
        typer.Option(
            help=(
                "Broker ids of each partition, such as 1:2:3,2:3:1. By default, replicas are spread over the online "
                "brokers."
            )
        ),
    ] = "",
    properties: Properties = None,
    timeout_ms: TimeoutMs = _TIMEOUT_MS,
    queue_bound: Bound = _BOUND,
) -> None:
    """Create a topic and wait until its replicas have started."""
    from controller_core.model.ids import PartitionId, TopicName
    from controller_core.model.topics import topic_names

    assignment = {
        PartitionId(number): _brokers(each, ":")
        for number, each in enumerate(filter(None, replica_assignment.split(",")))
    }
    if topic_names.explain_illegal(topic):
        raise usage_error(ValueError(f"{topic!r} is not a valid topic name"))

    async def create(admin: "Admin") -> None:
        await admin.create_topic(
            TopicName(topic),
            num_partitions=partitions,
            replication_factor=replication_factor,
            assignment=assignment or None,
        )

    _run(zookeeper, properties, timeout_ms, queue_bound, create)


@commands.command("add-partition")
def add_partition(
    zookeeper: Zookeeper,
    topic: Topic,
    partition: Partition,
    replicas: Replicas,
    properties: Properties = None,
    timeout_ms: TimeoutMs = _TIMEOUT_MS,
    queue_bound: Bound = _BOUND,
) -> None:
    """Add a partition to a topic."""
    brokers = _brokers(replicas)
    _run(
        zookeeper,
        properties,
        timeout_ms,
        queue_bound,
        lambda admin: admin.add_partition(_partition(topic, partition), brokers),
    )


@commands.command("delete-partition")
def delete_partition(
    zookeeper: Zookeeper,
    topic: Topic,
    partition: Partition,
    properties: Properties = None,
    timeout_ms: TimeoutMs = _TIMEOUT_MS,
    queue_bound: Bound = _BOUND,
) -> None:
    """Delete one partition and all its messages."""
    _run(
        zookeeper,
        properties,
        timeout_ms,
        queue_bound,
        lambda admin: admin.delete_partition(_partition(topic, partition)),
    )


@commands.command("delete-topic")
def delete_topic(
    zookeeper: Zookeeper,
    topic: Topic,
    properties: Properties = None,
    timeout_ms: TimeoutMs = _TIMEOUT_MS,
    queue_bound: Bound = _BOUND,
) -> None:
    """Delete a topic and all its messages."""
    from controller_core.model.ids import TopicName

    _run(zookeeper, properties, timeout_ms, queue_bound, lambda admin: admin.delete_topic(TopicName(topic)))


@commands.command("reassign")
def reassign(
    zookeeper: Zookeeper,
    topic: Topic,
    partition: Partition,
    replicas: Replicas,
    wait: Annotated[bool, typer.Option(help="Wait until the partition has moved.")] = True,
    properties: Properties = None,
    timeout_ms: TimeoutMs = _TIMEOUT_MS,
    queue_bound: Bound = _BOUND,
) -> None:
    """Move a partition to other brokers."""
    brokers = _brokers(replicas)
    _run(
        zookeeper,
        properties,
        timeout_ms,
        queue_bound,
        lambda admin: admin.reassign(_partition(topic, partition), brokers, waits=wait),
    )


@commands.command("clean-failed-creations")
def clean_failed_creations(
    zookeeper: Zookeeper,
    properties: Properties = None,
    timeout_ms: TimeoutMs = _TIMEOUT_MS,
    queue_bound: Bound = _BOUND,
) -> None:
    """Remove the remains of topics whose creation failed."""

    async def clean(admin: "Admin") -> None:
        for topic in await admin.clean_failed_topic_creation_attempts():
            typer.echo(f"cleaned up: {topic}")

    _run(zookeeper, properties, timeout_ms, queue_bound, clean)


def _run(
    zookeeper: str, properties: Path | None, timeout_ms: int, bound: int, work: Callable[["Admin"], Awaitable[None]]
) -> None:
    from controller_core.security.properties_file import InvalidProperties
    from controller_core.zk.codecs import MalformedZnode
    from controller_core.zk.kazoo.session import KazooSession
    from controller_core.zk.secured.properties import make_zk_security_source
    from controller_core.zk.session import ZkError
    from replica_broker.v2.admin.assigning import TooFewBrokers
    from replica_broker.v2.admin.topics import Admin, AdminFailed
    from replica_broker.v2.znodes.state_change_queue import FollowerStateChangeQueueFull

    async def do() -> None:
        zk = await KazooSession.connect(
            zookeeper,
            session_timeout_ms=_TIMEOUT_MS,
            connect_timeout_ms=timeout_ms,
            security=make_zk_security_source(properties),
        )
        try:
            await work(Admin(zk, timeout_ms=timeout_ms, bound=bound))
        finally:
            await zk.close()

    try:
        asyncio.run(do())
    except InvalidProperties as error:
        raise usage_error(ValueError(f"--properties: {error}")) from error
    except (AdminFailed, TooFewBrokers, FollowerStateChangeQueueFull, ZkError, MalformedZnode, ValueError) as error:
        raise failure(error) from error


def _partition(topic: str, partition: int) -> "TopicPartition":
    from controller_core.model.ids import PartitionId, TopicName, TopicPartition

    return TopicPartition(TopicName(topic), PartitionId(partition))


def _brokers(text: str, separator: str = ",") -> "tuple[BrokerId, ...]":
    from controller_core.model.ids import BrokerId

    parts = text.split(separator)
    if not all(part.isascii() and part.isdigit() for part in parts) or len(set(parts)) != len(parts):
        raise usage_error(ValueError(f"{text!r} is not a list of distinct broker ids, such as {separator.join('123')}"))
    return tuple(BrokerId(int(part)) for part in parts)
