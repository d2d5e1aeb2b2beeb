"""`kontroller reassign`: the moves of kafka-reassign-partitions, with the same JSON files."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from controller_core.model.wording import name_subject
from kontroller.cli.administering.connection import EXIT_NOT_YET, Allowance, Cluster, read_text
from kontroller.cli.administering.output import Format, Output, say, show
from kontroller.cli.endings import failure, say_in_one_line, usage_error
from kontroller.cli.option_groups import add_command
from kontroller.screen import format_ids

if TYPE_CHECKING:
    from controller_core.model.ids import PartitionReplica, TopicPartition
    from kontroller import AdminClient, Placement, Progress, ThrottleSet

    Placements = Mapping[PartitionReplica, Placement]

commands = typer.Typer(help="Move partitions between brokers: start, verify, cancel, list.", no_args_is_help=True)

_NAMED: Final = 5
"""Partitions that a message names."""
_RETURNS_S: Final = 3.0
"""Seconds between checks for brokers that return during a move."""
PlanFile = Annotated[
    Path,
    typer.Option(
        "--reassignment-json-file",
        help="File with the plan in the format of kafka-reassign-partitions; - for standard input.",
    ),
]


PreserveThrottles = Annotated[bool, typer.Option("--preserve-throttles", help="Do not remove throttles.")]


@add_command(commands, "start")
def start(
    cluster: Cluster,
    plan: PlanFile,
    throttle: Annotated[
        int | None,
        typer.Option(
            "--throttle",
            help="Bytes per second that each broker may copy for the move. Default: no limit.",
            min=1,
            show_default=False,
        ),
    ] = None,
    additional: Annotated[
        bool,
        typer.Option(
            "--additional",
            help="Start although other partitions move. If the same move is given again, its throttle is changed.",
        ),
    ] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until all partitions have moved.")] = True,
    output: Output = Format.TABLE,
) -> None:
    """Starts a move, prints the plan that would revert it, and waits for its end.

    If the plan has log_dirs, brokers first put replicas into these log directories, or copy them there. The wait asks
    again for replicas that a broker has created elsewhere.

    Ctrl-C and --timeout-ms end the wait, but not the move; without --timeout-ms the wait lasts as long as the move.
    Kontroller removes the throttle with the move. With other controllers it is removed when the wait, or `verify`,
    finds that nothing moves. If some partitions are refused, the others move with their throttle, and nothing waits.
    Exits with 1 if a partition does not reach its target. The JSON or YAML document has state
    (refused, unknown, begun or ended), error, before (the plan that reverts the move) and partitions (as in verify, of
    a move that has ended)."""
    from kontroller import AdminError

    text = _read(plan)

    async def work(admin: "AdminClient", time: Allowance) -> _Move:
        moving = await admin.list_reassignments(timeout_ms=time.require_time_ms())
        if moving and not additional:
            raise AdminError(
                f"{_name_moving(moving)} moving already: wait for that, cancel it, or give --additional to start more; "
                "nothing has begun"
            )
        move = _Move(await admin.current_assignment(text, timeout_ms=time.require_time_ms()))
        typer.echo("Current partition replica assignment; as --reassignment-json-file it reverts the move:\n", err=True)
        typer.echo(f"{move.before}\n", err=output is not Format.TABLE)
        try:
            await _begin(admin, text, time, move, throttle)
            if move.throttle is not None and move.state != "refused":
                _say_throttle(move.throttle, waits=wait and move.trouble is None)
            if wait and move.state == "begun" and move.trouble is None:
                await _wait(admin, text, time, move, throttle)
        except asyncio.CancelledError:
            if output is not Format.TABLE:
                _say(output, move)
            typer.echo(f"kontroller: {_describe_next_steps(plan, move)}", err=True)
            raise
        return move

    move = cluster.run(work)
    _say(output, move)
    if move.trouble is not None:
        goes_on = f"; {_describe_next_steps(plan, move)}" if move.state in ("unknown", "begun") else ""
        raise failure(AdminError(f"{move.trouble}{goes_on}"))


@add_command(commands, "verify")
def verify(
    cluster: Cluster,
    plan: PlanFile,
    preserve_throttles: PreserveThrottles = False,
    output: Output = Format.TABLE,
) -> None:
    """Shows the progress of each partition: 1 (completed), 0 (in progress), -1 (neither moves nor is at its target).
    If the plan has log_dirs, also the bytes left to copy between log directories.

    Removes throttles if nothing moves in the whole cluster, because any throttle may belong to any move. Exits with 0
    if all are completed, 1 if some failed, 3 if some are in progress."""
    from kontroller import Progress

    text = _read(plan)

    async def work(
        admin: "AdminClient", time: Allowance
    ) -> "tuple[Mapping[TopicPartition, Progress], Placements, ThrottlesStay | None]":
        found = await admin.verify_reassign_partitions(text, timeout_ms=time.require_time_ms())
        placements = await admin.placements_of_reassignment(text, timeout_ms=time.require_time_ms())
        if preserve_throttles or Progress.IN_PROGRESS in found.values():
            return found, placements, None
        return found, placements, await _clear_throttles(admin, text, time)

    found, placements, stay = cluster.run(work)
    missed = "are not at their target, and do not move there"
    show_progress(output, found, placements=placements, failed=missed, stay=stay)


@add_command(commands, "cancel")
def cancel(
    cluster: Cluster,
    plan: PlanFile,
    preserve_throttles: PreserveThrottles = False,
    output: Output = Format.TABLE,
) -> None:
    """Moves the partitions of a plan back to their original replicas, ends copying to its log_dirs, and removes throttles
    if nothing else moves."""
    from kontroller import parse_reassignment

    text = _read(plan)

    async def work(admin: "AdminClient", time: Allowance) -> "tuple[tuple[TopicPartition, ...], ThrottlesStay | None]":
        cancelled = await admin.cancel_reassignment(text, timeout_ms=time.require_time_ms())
        return cancelled, None if preserve_throttles else await _clear_throttles(admin, text, time)

    cancelled, stay = cluster.run(work)
    value = [
        {"topic": tp.topic, "partition": tp.partition, "result": "cancelled" if tp in cancelled else "not moving"}
        for tp in sorted(parse_reassignment(text))
    ]
    say(output, value, [f"the move of {tp} is cancelled" for tp in cancelled] or ["none of these partitions moved"])
    if stay is not None:
        _say_stay(stay)


@add_command(commands, "list")
def list_reassignments(cluster: Cluster, output: Output = Format.TABLE) -> None:
    """Lists all partitions that are being reassigned."""
    found = cluster.ask(lambda admin, timeout_ms: admin.list_reassignments(timeout_ms=timeout_ms))
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
        (tp.topic, tp.partition, *map(format_ids, (each.replicas, each.adding, each.removing, each.target)))
        for tp, each in sorted(found.items())
    ]
    show(output, value, ("TOPIC", "PARTITION", "REPLICAS", "ADDING", "REMOVING", "TARGET"), rows, empty="nothing moves")


class ThrottlesStay(NamedTuple):
    """Throttles that were not removed."""

    why: str
    is_failure: bool
    """True if an error prevented it; False if they may still be needed."""


@dataclass(slots=True)
class _Move:
    """The state of a move that this command starts."""

    before: str
    """The plan that reverts the move."""
    state: str = "unknown"
    """`unknown` (it may have begun), `refused`, `begun`, or `ended`."""
    partitions: "Mapping[TopicPartition, Progress]" = field(default_factory=dict)
    trouble: str | None = None
    throttle: "ThrottleSet | None" = None


async def _begin(admin: "AdminClient", text: str, time: Allowance, move: _Move, throttle: int | None) -> None:
    from kontroller import AdminError, OutcomeUnknown, PartlyRefused

    is_sent = False
    try:
        if throttle is not None:
            move.throttle = await admin.throttle_reassignment(text, throttle, timeout_ms=time.require_time_ms())
        is_sent = True
        await admin.start_reassignment(text, timeout_ms=time.require_time_ms())
    except AdminError as error:
        move.trouble = str(error)
        if is_sent and isinstance(error, OutcomeUnknown):  # the move may have begun, and then needs its throttle
            return
        if is_sent and isinstance(error, PartlyRefused) and error.begun != 0:  # so does a part of it
            move.state = "begun" if error.begun else "unknown"
            return
        move.state = "refused"
        if throttle is not None:
            move.trouble = _join(move.trouble, await _clear(admin, text, time, move.throttle))
    else:
        move.state = "begun"


async def _wait(admin: "AdminClient", text: str, time: Allowance, move: _Move, throttle: int | None) -> None:
    from kontroller import AdminError
    from kontroller.cli.administering.progress import display_progress

    try:
        async with display_progress(admin, text), _throttle_returning_brokers(admin, move.throttle, throttle):
            ended = await admin.wait_for_reassignment(text, timeout_ms=time.require_time_if_limited_ms())
    except AdminError as error:
        move.trouble = str(error)
        return
    move.state, move.partitions = "ended", ended.partitions
    move.trouble = str(ended.error) if ended.error is not None else None
    if throttle is None:
        return
    stay = await _clear(admin, text, time.renew_after_wait(), move.throttle)
    if stay is not None and not stay.is_failure:
        say_in_one_line(stay.why)
    else:
        move.trouble = _join(move.trouble, stay)


@asynccontextmanager
async def _throttle_returning_brokers(
    admin: "AdminClient", found: "ThrottleSet | None", bytes_per_second: int | None
) -> AsyncIterator[None]:
    """Throttle brokers that were down at the start, as they return. A throttle that the controller owns needs no help."""
    from controller_core.supervision import start_supervised

    if found is None or bytes_per_second is None or found.is_owned or not found.absent:
        yield
        return
    work = start_supervised(lambda: _keep_throttling(admin, found.absent, bytes_per_second), name="returning brokers")
    try:
        yield
    finally:
        work.cancel()


async def _keep_throttling(admin: "AdminClient", absent: "Iterable[int]", bytes_per_second: int) -> None:
    from kontroller import AdminError

    last = None
    while absent:
        await asyncio.sleep(_RETURNS_S)
        try:
            absent = await admin.throttle_brokers(absent, bytes_per_second)
        except AdminError as error:
            if str(error) != last:
                say_in_one_line(f"{_name_brokers(absent)} may have no throttle: {error}")
            last = str(error)


def _say_throttle(found: "ThrottleSet", *, waits: bool) -> None:
    """Print who ends the throttle, and which brokers have none."""
    if found.is_owned:
        if found.absent:
            say_in_one_line(f"{_name_brokers(found.absent)} down: the throttle applies there from the next start")
        if not waits:
            say_in_one_line("the controller removes the throttle with the move")
        return
    if found.absent:
        later = "; it applies there when they return during the wait" if waits else ""
        say_in_one_line(f"{_name_brokers(found.absent)} down, and only the other brokers are throttled{later}")
    if not waits:
        say_in_one_line("the throttle stays after the move: `kontroller reassign verify` with the same plan removes it")


def show_progress(
    output: Format,
    found: "Mapping[TopicPartition, int]",
    *,
    failed: str,
    placements: "Placements | None" = None,
    stay: ThrottlesStay | None = None,
) -> None:
    """Print the progress of each partition, and exit as `verify` says. `failed`: the predicate of failed partitions."""
    from kontroller import AdminError, Progress

    places = placements or {}
    value = _make_value(found, places)
    rows = [tuple(each.values()) for each in _make_value(found)]
    heads: tuple[str, ...] = ("TOPIC", "PARTITION", "RESULT", "MEANING")
    if places:
        heads = (*heads, "LOG DIRECTORIES")
        said: dict[TopicPartition, list[str]] = {tp: [] for tp in sorted(found)}
        for replica, placement in places.items():
            said[replica.topic_partition].append(_describe_placement(replica, placement))
        rows = [(*row, "; ".join(words)) for row, words in zip(rows, said.values(), strict=True)]
    show(output, value, heads, rows, empty="there are no partitions")
    if Progress.FAILED in found.values():
        count = sum(each == Progress.FAILED for each in found.values())
        raise failure(AdminError(_join(f"{count} of {len(found)} partitions {failed}", stay) or ""))
    if stay is not None:
        _say_stay(stay)
    if Progress.IN_PROGRESS in found.values():
        raise typer.Exit(EXIT_NOT_YET)


async def _clear(admin: "AdminClient", text: str, time: Allowance, found: "ThrottleSet | None") -> ThrottlesStay | None:
    """Remove the throttle that this command has set. One that the controller owns stands in nobody's way."""
    from kontroller import AdminError

    if found is None or not found.is_owned:
        return await _clear_throttles(admin, text, time)
    try:
        await admin.end_owned_throttle(text, timeout_ms=time.require_time_ms())
    except AdminError as error:
        return ThrottlesStay(f"the throttle may stay: {error}: verify again", is_failure=True)
    return None


async def _clear_throttles(admin: "AdminClient", text: str, time: Allowance) -> ThrottlesStay | None:
    """Remove the throttles of a plan's topics and brokers, unless something moves in the whole cluster.

    Unless the controller owns it, no throttle says which move it belongs to, so a throttle of another move on the same
    brokers would be removed, too. Kafka's tool has this rule when it verifies; here it also applies after a
    cancellation and at the end of a wait."""
    from kontroller import AdminError

    try:
        moving = await admin.list_reassignments(timeout_ms=time.require_time_ms())
    except AdminError as error:
        why = f"throttles stay, because the moves could not be listed: {error}: verify again"
        return ThrottlesStay(why, is_failure=True)
    if moving:
        why = f"any throttles stay, because {_name_moving(moving)} moving: verify again when nothing moves"
        return ThrottlesStay(why, is_failure=False)
    try:
        await admin.unthrottle_reassignment(text, timeout_ms=time.require_time_ms())
    except AdminError as error:
        return ThrottlesStay(str(error), is_failure=True)
    return None


def _say(output: Format, move: _Move) -> None:
    value = {
        "state": move.state,
        "error": move.trouble,
        "before": json.loads(move.before),
        "partitions": _make_value(move.partitions),
    }
    lines = ["the move has begun"] if move.state == "begun" else []
    if move.partitions and all(each == 1 for each in move.partitions.values()):
        lines = [f"all {len(move.partitions)} partitions are at their targets"]
    say(output, value, lines)


def _say_stay(stay: ThrottlesStay) -> None:
    """Print why throttles stay. A failure ends the command."""
    if stay.is_failure:
        raise failure(RuntimeError(stay.why))
    say_in_one_line(stay.why)


def _make_value(found: "Mapping[TopicPartition, int]", placements: "Placements | None" = None) -> list[dict[str, Any]]:
    from kontroller import Progress

    value: dict[TopicPartition, dict[str, Any]] = {
        tp: {"topic": tp.topic, "partition": tp.partition, "result": int(each), "meaning": Progress(each).name.lower()}
        for tp, each in sorted(found.items())
    }
    for replica, placement in (placements or {}).items():
        value[replica.topic_partition].setdefault("log_dirs", []).append(
            {
                "broker": replica.broker,
                "log_dir": placement.directory,
                "place": placement.place.value,
                "bytes_left": placement.bytes_left,
                "offset_lag": placement.offset_lag,
            }
        )
    return [*value.values()]


def _describe_placement(replica: "PartitionReplica", found: "Placement") -> str:
    from rich.filesize import decimal

    left = decimal(found.bytes_left) if found.bytes_left is not None else "unknown bytes"
    words = {
        "there": "",
        "copying": f": {left} left",
        "elsewhere": f": is in {found.present}",
        "absent": ": not created yet",
        "unknown": ": unknown",
    }
    return f"{found.directory} on broker {replica.broker}{words[found.place]}"


def _read(plan: Path) -> str:
    """Return the text of a plan. Ends the command if it is not a plan."""
    from kontroller import InvalidArgument, parse_reassignment

    text = read_text(plan)
    try:
        parse_reassignment(text)
    except InvalidArgument as error:
        raise usage_error(error) from error
    return text


def _name_moving(moving: "Iterable[TopicPartition]") -> str:
    names = sorted(map(str, moving))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more} {'is' if len(names) == 1 else 'are'}"


def _name_brokers(brokers: "Iterable[int]") -> str:
    return name_subject("broker", sorted(brokers))


def _join(trouble: str | None, stay: ThrottlesStay | None) -> str | None:
    return "; ".join(each for each in (trouble, stay.why if stay else None) if each is not None) or None


def _describe_next_steps(plan: Path, move: _Move) -> str:
    subject = "the move goes on without this command" if move.state == "begun" else "the move goes on if it has begun"
    file = "the same plan" if str(plan) == "-" else f"--reassignment-json-file {plan}"
    return f"{subject}: `kontroller reassign verify` with {file} shows its progress, and `cancel` reverts it"
