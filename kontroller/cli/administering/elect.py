"""`kontroller elect`: the elections of kafka-leader-election, with the same JSON files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kontroller.cli.administering.connection import (
    Config,
    Server,
    TimeoutMs,
    Yes,
    confirm,
    read_text,
    run,
)
from kontroller.cli.administering.output import Format, Output, show
from kontroller.cli.administering.reassign import show_progress
from kontroller.cli.endings import EXIT_FAILED, failure, usage_error

if TYPE_CHECKING:
    from kontroller import Elected

commands = typer.Typer(help="Leader elections: preferred, unclean, verify.", no_args_is_help=True)

JsonFile = Annotated[
    Path | None,
    typer.Option(
        "--path-to-json-file", help="File of partitions in the format of kafka-leader-election; - for standard input."
    ),
]
All = Annotated[bool, typer.Option("--all-topic-partitions", help="Select all partitions of the cluster.")]
Topic = Annotated[str | None, typer.Option("--topic", help="Topic of one partition. Needs --partition.")]
Partition = Annotated[int | None, typer.Option("--partition", help="Number of the partition of --topic.", min=0)]


@commands.command("preferred")
def elect_preferred(
    server: Server = None,
    json_file: JsonFile = None,
    everything: All = False,
    topic: Topic = None,
    partition: Partition = None,
    output: Output = Format.TABLE,
    command_config: Config = None,
    timeout_ms: TimeoutMs = None,
) -> None:
    """Elects the preferred leaders: the first replica of each partition. Exits with 1 if an election fails."""
    chosen = _read_choice(json_file, everything, topic, partition)
    elected = run(
        server,
        command_config,
        lambda admin, time: admin.preferred_replica_leader_election(chosen, timeout_ms=time.require_time_ms()),
        timeout_ms,
    )
    _show(output, elected)


@commands.command("unclean")
def elect_unclean(
    server: Server = None,
    json_file: JsonFile = None,
    everything: All = False,
    topic: Topic = None,
    partition: Partition = None,
    yes: Yes = False,
    output: Output = Format.TABLE,
    command_config: Config = None,
    timeout_ms: TimeoutMs = None,
) -> None:
    """Elects a live replica as the leader of partitions without one. Loses records that only dead replicas have. Asks
    first."""
    chosen = _read_choice(json_file, everything, topic, partition)
    what = f"{topic}-{partition}" if topic else "all partitions without a leader" if everything else str(json_file)
    title = f"Please confirm the unclean election of {what}: records that only dead replicas have are lost."
    if not confirm(title, yes=yes, loses_data=True):
        typer.echo("nothing is elected", err=True)
        raise typer.Exit(EXIT_FAILED)
    elected = run(
        server,
        command_config,
        lambda admin, time: admin.elect_unclean(chosen, timeout_ms=time.require_time_ms()),
        timeout_ms,
    )
    _show(output, elected)


@commands.command("verify")
def verify(
    server: Server = None,
    json_file: JsonFile = None,
    everything: All = False,
    topic: Topic = None,
    partition: Partition = None,
    output: Output = Format.TABLE,
    command_config: Config = None,
    timeout_ms: TimeoutMs = None,
) -> None:
    """Shows for each partition if its first replica leads: 1 (leads), 0 (could lead), -1 (not in sync, or no such
    partition).

    Exits with 0 if all lead, 1 if some cannot, 3 if some could."""
    chosen = _read_choice(json_file, everything, topic, partition)
    found = run(
        server,
        command_config,
        lambda admin, time: admin.verify_preferred_replica_leader_election(chosen, timeout_ms=time.require_time_ms()),
        timeout_ms,
    )
    show_progress(output, found, failed="are not there, or their first replica is not in sync")


def _read_choice(json_file: Path | None, everything: bool, topic: str | None, partition: int | None) -> str | None:
    """Return the JSON of the selected partitions; None for all. Ends the command if the options are not one
    selection."""
    from controller_core.model.ids import PartitionId, TopicName, TopicPartition
    from kontroller import format_partitions

    is_one = topic is not None or partition is not None
    if sum((json_file is not None, everything, is_one)) != 1 or (is_one and (topic is None or partition is None)):
        raise usage_error(
            ValueError(
                "select partitions: give --path-to-json-file, --all-topic-partitions, or --topic with --partition"
            )
        )
    if json_file is not None:
        return read_text(json_file)
    if topic is not None and partition is not None:
        return format_partitions([TopicPartition(TopicName(topic), PartitionId(partition))])
    return None


def _show(output: Format, elected: "Elected") -> None:
    from kontroller import PartlyRefused

    value = [
        {"topic": tp.topic, "partition": tp.partition, "error": str(error) if error else None}
        for tp, error in sorted(elected.items())
    ]
    rows = [(tp.topic, tp.partition, str(error) if error else "done") for tp, error in sorted(elected.items())]
    show(output, value, ("TOPIC", "PARTITION", "RESULT"), rows, empty="every partition is led as it should be")
    refused = tuple(error for _, error in sorted(elected.items()) if error is not None)
    if refused:
        led = len(elected) - len(refused)
        raise failure(PartlyRefused(refused, f"{led} of {len(elected)} partitions are led as was asked"))
