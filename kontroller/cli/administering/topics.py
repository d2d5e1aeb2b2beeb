"""`kontroller topics`: the functions of kafka-topics, and of kafka-configs for topics."""

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kontroller.cli.administering.connection import EXIT_NOT_YET, Allowance, Cluster, Yes, confirm, parse_key_values
from kontroller.cli.administering.output import Format, Output, say, show
from kontroller.cli.endings import EXIT_FAILED, failure
from kontroller.cli.option_groups import add_command
from kontroller.screen import format_ids, format_table

if TYPE_CHECKING:
    from kontroller import AdminError, TopicDescription

commands = typer.Typer(help="Topics: create, alter, delete, list, describe.", no_args_is_help=True)

_CREATIONS: Final = {"created": "is created", "existing": "exists already", "possible": "could be created"}
_DELETIONS: Final = {
    "marked": "is marked for deletion",
    "missing": "does not exist",
    "unknown": "may be deleted: describe it",
    "failed": "is not deleted",
}
_UNKNOWN: Final = (
    "marked for deletion: unknown, because only ZooKeeper knows it: set zookeeper.connect in --command-config"
)
Topic = Annotated[str, typer.Option("--topic", help="Name of the topic.")]
Topics = Annotated[list[str], typer.Option("--topic", help="Name of a topic. May be repeated.")]
Partitions = Annotated[int | None, typer.Option("--partitions", help="Number of partitions.", show_default=False)]
Assignment = Annotated[
    str | None,
    typer.Option(
        "--replica-assignment",
        help="Brokers of each partition: 1:2,2:3 puts partition 0 on 1 and 2, and partition 1 on 2 and 3.",
        show_default=False,
    ),
]


@add_command(commands, "create")
def create(
    cluster: Cluster,
    topic: Topic,
    partitions: Partitions = None,
    replication_factor: Annotated[
        int | None, typer.Option("--replication-factor", help="Replicas of each partition.", show_default=False)
    ] = None,
    replica_assignment: Assignment = None,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", help="Configuration: NAME=VALUE. May be repeated.", show_default=False),
    ] = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="Leave an existing topic as it is.")] = False,
    validate_only: Annotated[bool, typer.Option("--validate-only", help="Only validate; create nothing.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """Creates a topic, with numbers of partitions and replicas, or with an assignment. Default: the cluster's numbers."""
    from kio.schema.errors import ErrorCode

    from kontroller import AdminClient, Refused

    configs = parse_key_values(config, "--config")

    async def work(admin: AdminClient, time: Allowance) -> str:
        try:
            await admin.create_topic(
                topic,
                partitions,
                replication_factor,
                replica_assignment=replica_assignment,
                configs=configs,
                validate_only=validate_only,
                timeout_ms=time.require_time_ms(),
            )
        except Refused as error:
            if if_not_exists and error.code is ErrorCode.topic_already_exists:
                return "existing"
            raise
        return "possible" if validate_only else "created"

    result = cluster.run(work)
    say(output, {"topic": topic, "result": result}, [f"topic {topic} {_CREATIONS[result]}"])


@add_command(commands, "alter")
def alter(
    cluster: Cluster,
    topic: Topic,
    partitions: Partitions = None,
    replica_assignment: Assignment = None,
    add_config: Annotated[
        list[str] | None,
        typer.Option("--add-config", help="Configuration to set: NAME=VALUE. May be repeated.", show_default=False),
    ] = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option("--delete-config", help="Configuration to remove: NAME. May be repeated.", show_default=False),
    ] = None,
    validate_only: Annotated[
        bool, typer.Option("--validate-only", help="Only validate; print the changes, and make none.")
    ] = False,
    fail_on_changes: Annotated[
        bool, typer.Option("--fail-on-changes", help="Exit with 3 if something is, or would be, altered.")
    ] = False,
    output: Output = Format.TABLE,
) -> None:
    """Alters configurations, adds partitions, and moves the partitions whose assignment differs.

    Changes that are known to fail are refused before anything is done. Each finished step is printed. Exits with 1 if a
    step failed, or if its result is unknown."""
    added = parse_key_values(add_config, "--add-config")
    altered = cluster.ask(
        lambda admin, timeout_ms: admin.alter_topic(
            topic,
            partitions,
            replica_assignment,
            added,
            delete_config or (),
            validate_only=validate_only,
            timeout_ms=timeout_ms,
        )
    )
    done = "would be done" if validate_only else "done"
    steps = [
        {
            "step": step.what,
            "result": done if step.error is None else _name_failure(step.error),
            "error": None if step.error is None else str(step.error),
        }
        for step in altered.steps
    ]
    lines = [f"{step['step']}: {step['result']}" for step in steps]
    say(output, {"topic": topic, "steps": steps}, lines or [f"topic {topic} needs no change"])
    if altered.error is not None:
        raise failure(altered.error)
    if altered.steps and fail_on_changes:
        raise typer.Exit(EXIT_NOT_YET)


@add_command(commands, "delete")
def delete(
    cluster: Cluster,
    topics: Topics,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Ignore topics that do not exist.")] = False,
    yes: Yes = False,
    output: Output = Format.TABLE,
) -> None:
    """Deletes topics, including their data. Asks first.

    Exits with 1 if a topic is not deleted, or if its result is unknown, because nobody answered in time."""
    from kio.schema.errors import ErrorCode

    from kontroller import AdminClient, AdminError, Refused

    title = "Please confirm deletion of the following topics, with their data:"
    if not confirm(title, topics, yes=yes, loses_data=True):
        typer.echo("nothing is deleted", err=True)
        raise typer.Exit(EXIT_FAILED)

    async def work(admin: AdminClient, time: Allowance) -> dict[str, AdminError | None]:
        ended: dict[str, AdminError | None] = {}
        for topic in dict.fromkeys(topics):
            try:
                await admin.delete_topic(topic, timeout_ms=time.require_time_ms())
                ended[topic] = None
            except AdminError as error:
                ended[topic] = error
        return ended

    def result(error: AdminError | None) -> str:
        if error is None:
            return "marked"
        is_gone = isinstance(error, Refused) and error.code is ErrorCode.unknown_topic_or_partition
        return "missing" if is_gone else _name_failure(error)

    ended = cluster.run(work)
    value = [
        {"topic": topic, "result": result(error), "error": None if error is None else str(error)}
        for topic, error in ended.items()
    ]
    say(output, value, [f"topic {topic} {_DELETIONS[result(error)]}" for topic, error in ended.items()])
    accepted = ("marked", "missing") if if_exists else ("marked",)
    troubles = [str(error) for error in ended.values() if result(error) not in accepted]
    if troubles:
        raise failure(AdminError("; ".join(troubles)))


@add_command(commands, "list")
def list_topics(
    cluster: Cluster,
    exclude_internal: Annotated[bool, typer.Option("--exclude-internal", help="Leave out Kafka's own topics.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """Lists the live topics, and the topics that are marked for deletion.

    Only ZooKeeper knows the latter: set zookeeper.connect in --command-config. Otherwise they are unknown."""
    found = cluster.ask(lambda admin, timeout_ms: admin.list_topics(timeout_ms=timeout_ms))
    alive = [topic for topic in found.alive if not (exclude_internal and topic.startswith("__"))]
    marked = found.marked_for_deletion
    value = {"alive": alive, "markedForDeletion": list(marked) if marked is not None else "unknown"}
    rows = [(topic, "alive") for topic in alive] + [(topic, "marked for deletion") for topic in marked or ()]
    lines = format_table(("TOPIC", "STATE"), rows, most=None) or ["there are no topics"]
    say(output, value, lines if marked is not None else [*lines, "", _UNKNOWN])


@add_command(commands, "describe")
def describe(cluster: Cluster, topics: Topics, output: Output = Format.TABLE) -> None:
    """Shows partitions with leader, replicas and ISR, and the configurations that are set on the topic."""
    found = cluster.ask(lambda admin, timeout_ms: admin.describe_topics(topics, timeout_ms=timeout_ms))
    rows = [
        (
            topic.topic,
            each.partition.partition,
            "none" if each.leader is None else each.leader,
            format_ids(each.replicas),
            format_ids(each.isr),
        )
        for topic in found
        for each in topic.partitions
    ]
    if output is Format.TABLE:
        for topic in found:
            configs = ", ".join(f"{name}={value}" for name, value in topic.configs.items()) or "none of its own"
            typer.echo(
                f"{topic.topic}: {len(topic.partitions)} partitions, replication factor {topic.replication_factor}, "
                f"configurations: {configs}"
            )
        typer.echo()
    heads = ("TOPIC", "PARTITION", "LEADER", "REPLICAS", "ISR")
    show(output, [_make_value(topic) for topic in found], heads, rows, empty="there are no partitions")


def _make_value(topic: "TopicDescription") -> dict[str, Any]:
    return {
        "topic": topic.topic,
        "partitionCount": len(topic.partitions),
        "replicationFactor": topic.replication_factor,
        "configs": dict(topic.configs),
        "partitions": [
            {
                "partition": each.partition.partition,
                "leader": each.leader,
                "replicas": list(each.replicas),
                "isr": list(each.isr),
            }
            for each in topic.partitions
        ],
    }


def _name_failure(error: "AdminError") -> str:
    """Return `unknown` for a change that may have been made, otherwise `failed`."""
    from kontroller import OutcomeUnknown

    return "unknown" if isinstance(error, OutcomeUnknown) else "failed"
