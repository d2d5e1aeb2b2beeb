"""`kontroller reassign`: what kafka-reassign-partitions does, by the same JSON files."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from controller_admin.commands.administering.connection import (
    EXIT_NOT_YET,
    Config,
    Server,
    TimeoutMs,
    read_text,
    run,
)
from controller_admin.commands.administering.output import Format, Output, ids, show
from controller_admin.commands.endings import failure

if TYPE_CHECKING:
    from controller_admin.client.admin_client import AdminClient
    from controller_core.model.ids import TopicPartition

commands = typer.Typer(help="Partitions that move between brokers: start, verify, cancel, list.", no_args_is_help=True)

PlanFile = Annotated[
    Path,
    typer.Option(
        "--reassignment-json-file", help="The plan, as kafka-reassign-partitions has it; - for standard input."
    ),
]


@commands.command("start")
def start(
    plan: PlanFile,
    server: Server = None,
    throttle: Annotated[
        int | None,
        typer.Option("--throttle", help="Bytes a second that a broker may copy for it.", min=1, show_default=False),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Waits until all has moved.")] = True,
    command_config: Config = None,
    timeout_ms: TimeoutMs = None,
) -> None:
    """Begins a move, prints the plan that would take it back, and waits for its end.

    Ctrl-C ends the waiting and leaves the move. A throttle goes when the wait, or `verify`, finds that the move has ended.
    Exits with 1 where a partition does not come to its target."""
    from controller_admin.commands.administering.progress import shown_progress

    text = read_text(plan)

    async def work(admin: "AdminClient") -> None:
        before = await admin.current_assignment(text, timeout_ms=timeout_ms)
        typer.echo(
            "Current partition replica assignment; keep it, as --reassignment-json-file it takes the move back:\n"
        )
        typer.echo(before)
        typer.echo()
        if throttle is not None:
            await admin.throttle_reassignment(text, throttle, timeout_ms=timeout_ms)
        await admin.start_reassignment(text, timeout_ms=timeout_ms)
        if not wait:
            typer.echo("the move has begun")
            return
        try:
            async with shown_progress(admin, text):
                ended = await admin.wait_for_reassignment(text, timeout_ms=timeout_ms)
        except asyncio.CancelledError:
            typer.echo(_goes_on(plan), err=True)
            raise
        if ended.error is not None:
            raise ended.error
        if throttle is not None:
            await admin.unthrottle_reassignment(text, timeout_ms=timeout_ms)
        typer.echo(f"all {len(ended.partitions)} partitions are at their targets")

    run(server, command_config, work)


@commands.command("verify")
def verify(
    plan: PlanFile,
    server: Server = None,
    preserve_throttles: Annotated[
        bool, typer.Option("--preserve-throttles", help="Leaves throttles where they are.")
    ] = False,
    output: Output = Format.TABLE,
    command_config: Config = None,
    timeout_ms: TimeoutMs = None,
) -> None:
    """Says how far each partition is: 1 (completed), 0 (in progress), -1 (it neither moves there nor is there).

    Exits with 0 where all are completed, 1 where some failed, 3 where some are in progress."""
    from controller_admin.client.reassigning.reassignments import Progress

    text = read_text(plan)

    async def work(admin: "AdminClient") -> "Mapping[TopicPartition, Progress]":
        found = await admin.verify_reassign_partitions(text, timeout_ms=timeout_ms)
        if not preserve_throttles and Progress.IN_PROGRESS not in found.values():
            await admin.unthrottle_reassignment(text, timeout_ms=timeout_ms)
        return found

    found = run(server, command_config, work)
    show_progress(output, found, failed="are not at their target, and do not move there")


@commands.command("cancel")
def cancel(plan: PlanFile, server: Server = None, command_config: Config = None, timeout_ms: TimeoutMs = None) -> None:
    """Has the partitions of a plan go back to where they were."""
    text = read_text(plan)

    async def work(admin: "AdminClient") -> "tuple[TopicPartition, ...]":
        cancelled = await admin.cancel_reassignment(text, timeout_ms=timeout_ms)
        await admin.unthrottle_reassignment(text, timeout_ms=timeout_ms)
        return cancelled

    cancelled = run(server, command_config, work)
    for tp in cancelled:
        typer.echo(f"the move of {tp} is cancelled")
    if not cancelled:
        typer.echo("none of these partitions moved")


@commands.command("list")
def list_reassignments(
    server: Server = None,
    output: Output = Format.TABLE,
    command_config: Config = None,
    timeout_ms: TimeoutMs = None,
) -> None:
    """Lists all partitions that are being reassigned."""
    found = run(server, command_config, lambda admin: admin.list_reassignments(timeout_ms=timeout_ms))
    value = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "replicas": list(each.replicas),
            "adding": list(each.adding),
            "removing": list(each.removing),
        }
        for tp, each in sorted(found.items())
    ]
    rows = [
        (tp.topic, tp.partition, *map(ids, (each.replicas, each.adding, each.removing, each.target)))
        for tp, each in sorted(found.items())
    ]
    show(output, value, ("TOPIC", "PARTITION", "REPLICAS", "ADDING", "REMOVING", "TARGET"), rows, empty="nothing moves")


def show_progress(output: Format, found: "Mapping[TopicPartition, int]", *, failed: str) -> None:
    """Prints how far each partition is, and exits as `verify` says. `failed`: what is said of those that failed."""
    from controller_admin.client.errors import AdminError
    from controller_admin.client.reassigning.reassignments import Progress

    value = [
        {"topic": tp.topic, "partition": tp.partition, "result": int(each), "meaning": Progress(each).name.lower()}
        for tp, each in sorted(found.items())
    ]
    rows = [(tp.topic, tp.partition, int(each), Progress(each).name.lower()) for tp, each in sorted(found.items())]
    show(output, value, ("TOPIC", "PARTITION", "RESULT", "MEANING"), rows, empty="there are no partitions")
    if Progress.FAILED in found.values():
        count = sum(each == Progress.FAILED for each in found.values())
        raise failure(AdminError(f"{count} of {len(found)} partitions {failed}"))
    if Progress.IN_PROGRESS in found.values():
        raise typer.Exit(EXIT_NOT_YET)


def _goes_on(plan: Path) -> str:
    return (
        "kontroller: the move goes on without this command: "
        f"`kontroller reassign verify --reassignment-json-file {plan}` says how far it is, and `cancel` takes it back"
    )
