"""`kontroller elect`: the elections of kafka-leader-election, with the same JSON files."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kontroller.cli.administering.connection import Cluster, Yes, confirm, read_text
from kontroller.cli.administering.output import Format, Output, show
from kontroller.cli.administering.reassign import show_progress
from kontroller.cli.endings import EXIT_FAILED, failure, usage_error
from kontroller.cli.option_groups import add_command

if TYPE_CHECKING:
    from kontroller import Elected

commands = typer.Typer(help="Leader elections: preferred, unclean, verify.", no_args_is_help=True)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The partitions of an election."""

    path_to_json_file: Annotated[
        Path | None,
        typer.Option(help="File of partitions in the format of kafka-leader-election; - for standard input."),
    ] = None
    all_topic_partitions: Annotated[
        bool, typer.Option("--all-topic-partitions", help="Select all partitions of the cluster.")
    ] = False
    topic: Annotated[str | None, typer.Option(help="Topic of one partition. Needs --partition.")] = None
    partition: Annotated[int | None, typer.Option(help="Number of the partition of --topic.", min=0)] = None

    @property
    def described(self) -> str:
        """The partitions in words."""
        if self.topic:
            return f"{self.topic}-{self.partition}"
        return "all partitions without a leader" if self.all_topic_partitions else str(self.path_to_json_file)

    def read(self) -> str | None:
        """Return the JSON of the selected partitions; None for all. Ends the command if the options are not one
        selection."""
        from controller_core.model.ids import PartitionId, TopicName, TopicPartition
        from kontroller import format_partitions

        is_one = self.topic is not None and self.partition is not None
        is_half = (self.topic is None) != (self.partition is None)
        if is_half or sum((self.path_to_json_file is not None, self.all_topic_partitions, is_one)) != 1:
            raise usage_error(
                ValueError(
                    "select partitions: give --path-to-json-file, --all-topic-partitions, or --topic with --partition"
                )
            )
        if self.path_to_json_file is not None:
            return read_text(self.path_to_json_file)
        if self.topic is not None and self.partition is not None:
            return format_partitions([TopicPartition(TopicName(self.topic), PartitionId(self.partition))])
        return None


@add_command(commands, "preferred")
def elect_preferred(cluster: Cluster, choice: Choice, output: Output = Format.TABLE) -> None:
    """Elects the preferred leaders: the first replica of each partition. Exits with 1 if an election fails."""
    chosen = choice.read()
    elected = cluster.ask(
        lambda admin, timeout_ms: admin.preferred_replica_leader_election(chosen, timeout_ms=timeout_ms)
    )
    _show(output, elected)


@add_command(commands, "unclean")
def elect_unclean(cluster: Cluster, choice: Choice, yes: Yes = False, output: Output = Format.TABLE) -> None:
    """Elects a live replica as the leader of partitions without one. Loses records that only dead replicas have. Asks
    first."""
    chosen = choice.read()
    title = f"Please confirm the unclean election of {choice.described}: records that only dead replicas have are lost."
    if not confirm(title, yes=yes, loses_data=True):
        typer.echo("nothing is elected", err=True)
        raise typer.Exit(EXIT_FAILED)
    elected = cluster.ask(lambda admin, timeout_ms: admin.elect_unclean(chosen, timeout_ms=timeout_ms))
    _show(output, elected)


@add_command(commands, "verify")
def verify(cluster: Cluster, choice: Choice, output: Output = Format.TABLE) -> None:
    """Shows for each partition if its first replica leads: 1 (leads), 0 (could lead), -1 (not in sync, or no such
    partition).

    Exits with 0 if all lead, 1 if some cannot, 3 if some could."""
    chosen = choice.read()
    found = cluster.ask(
        lambda admin, timeout_ms: admin.verify_preferred_replica_leader_election(chosen, timeout_ms=timeout_ms)
    )
    show_progress(output, found, failed="are not there, or their first replica is not in sync")


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
