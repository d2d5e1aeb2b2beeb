"""`kontroller plan`: plans moves of replicas and leaders, and changes nothing."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kontroller.cli.administering.connection import Allowance, Cluster
from kontroller.cli.endings import failure, say_in_one_line, usage_error
from kontroller.cli.options import LARGEST_ID
from kontroller.cli.planning.snapshot import (
    BetweenLooks,
    CapacityFile,
    ClosedBrokers,
    Traffic,
    complete,
    require_planner,
    say_troubles,
    take_loads,
)

if TYPE_CHECKING:
    from controller_planner.plan import Plan
    from kontroller import AdminClient, Snapshot
    from kontroller.planning.snapshot_file import StoredLoads


class Mode(StrEnum):
    """The kind of plan."""

    REBALANCE = "rebalance"
    DRAIN = "drain"
    RELIEVE = "relieve"
    EXPAND = "expand"
    REPLICATION_FACTOR = "replication-factor"
    SPREAD = "spread"
    LEADERS_ONLY = "leaders-only"


class PlanFormat(StrEnum):
    """The format of a plan."""

    TEXT = "text"
    JSON = "json"
    KAFKA = "kafka"
    YAML = "yaml"
    HTML = "html"


_SHOWN = (PlanFormat.TEXT, PlanFormat.JSON, PlanFormat.HTML)
_ANSWERED = (PlanFormat.TEXT, PlanFormat.JSON)


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """The scope and the limits of a plan."""

    broker: Annotated[
        list[int] | None,
        typer.Option(
            help="Broker to drain, to relieve, or to fill (default: those without replicas). May be repeated.",
            min=0,
            max=LARGEST_ID,
        ),
    ] = None
    below_percent: Annotated[
        int | None,
        typer.Option(
            help="With relieve: percentage of its disks that a broker may use afterwards. Default: its share of the bytes "
            "of all brokers, times --band.",
            min=1,
            max=100,
        ),
    ] = None
    exclude_broker: Annotated[
        list[int] | None,
        typer.Option(help="Broker that neither receives nor gives replicas. May be repeated.", min=0, max=LARGEST_ID),
    ] = None
    rack: Annotated[
        list[str] | None,
        typer.Option(
            help="Rack whose brokers may receive or give replicas. May be repeated. A --broker gives its own in any rack. "
            "Default: all."
        ),
    ] = None
    topic: Annotated[list[str] | None, typer.Option(help="Topic that may change. May be repeated. Default: all.")] = (
        None
    )
    exclude_topic: Annotated[list[str] | None, typer.Option(help="Topic that stays. May be repeated.")] = None
    replication_factor: Annotated[
        int | None, typer.Option(help="With replication-factor: replicas of each partition.", min=1)
    ] = None
    band: Annotated[
        float, typer.Option(help="Highest load at which a broker counts as balanced, as a multiple of its share.")
    ] = 1.05
    failed_together: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Losses of brokers, in a file as for --backtest. Replicas of a partition avoid brokers that were lost "
            "together. rebalance and spread also move replicas for that alone. Default: none.",
            show_default=False,
        ),
    ] = None
    seed: Annotated[int, typer.Option(help="Seed of random choices.", min=0)] = 0
    max_bytes: Annotated[float | None, typer.Option(help="Bytes that the plan may copy. Default: no limit.")] = None
    max_moves: Annotated[
        int | None, typer.Option(help="Partitions that the plan may change. Default: no limit.", min=1)
    ] = None
    batch_bytes: Annotated[
        float | None,
        typer.Option(help="Bytes that a broker may send, or receive, in one batch of moves. Default: no limit."),
    ] = None


def plan(
    cluster: Cluster,
    mode: Annotated[Mode, typer.Argument(help="The kind of plan.")],
    wishes: Wishes,
    traffic: Traffic,
    snapshot_file: Annotated[
        Path | None,
        typer.Option(
            "--snapshot",
            help="File that `kontroller snapshot` has written. Default: take a snapshot now. With --bootstrap-server as "
            "well, the plan is refused if replicas or brokers have changed since.",
            show_default=False,
        ),
    ] = None,
    between_looks_seconds: BetweenLooks = 60,
    capacities: CapacityFile = None,
    closed_broker: ClosedBrokers = None,
    what_if: Annotated[
        str | None,
        typer.Option(
            help='Plan for a hypothetical cluster: "lose rack b", "lose broker 3", "lose brokers 3, 4" or "add 2 '
            'brokers".',
            show_default=False,
        ),
    ] = None,
    why_not: Annotated[
        str | None,
        typer.Option(
            help="Instead of the plan, print the constraints and goals that keep a replica off a broker: "
            '"orders-3 on 7".',
            show_default=False,
        ),
    ] = None,
    tested_losses: Annotated[
        str | None,
        typer.Option(
            "--backtest",
            metavar="FILE|NUMBER",
            help="Say what losses of brokers mean before and after the plan, instead of the plan. FILE: a list such as "
            '[[1, 2], {"brokers": [3], "times": 2}], or broker_intervals.parquet of `kontroller history report`. NUMBER: '
            "each broker, each rack, and so many random pairs of brokers.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        PlanFormat,
        typer.Option(
            "--output",
            "-o",
            help="Format of the plan: text; json; kafka, the JSON of kafka-reassign-partitions and `kontroller "
            "reassign`; yaml, PartitionReassignments; html, a page for a browser.",
        ),
    ] = PlanFormat.TEXT,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--batches",
            help="With -o kafka: folder for a file for each batch. Start a batch when the previous one is done. Default: "
            "all moves in one document on standard output.",
            show_default=False,
        ),
    ] = None,
    moves: Annotated[int, typer.Option(help="With -o text: number of moves or losses to list.", min=0)] = 20,
    cluster_name: Annotated[
        str | None, typer.Option("--cluster", help="With -o yaml: KafkaCluster of the moves.", show_default=False)
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="With -o yaml: prefix of the names. Default: the mode, and the first digits of the plan's hash."
        ),
    ] = None,
    namespace: Annotated[str | None, typer.Option("--namespace", "-n", help="With -o yaml: their namespace.")] = None,
    throttle: Annotated[
        int | None,
        typer.Option(
            help="Bytes per second that each broker may copy. It sets the throttle with -o yaml, and the expected time "
            "with text, json and html.",
            min=1,
        ),
    ] = None,
) -> None:
    """Plans moves of replicas and leaders, and prints them with reasons, and brokers before and after. Changes nothing.

    rebalance: repairs racks, then balances the load with the fewest bytes. drain: empties --broker. relieve: moves the
    fewest bytes off --broker until its disks have room; nothing else moves. expand: fills --broker. replication-factor:
    adds or removes replicas. spread: spreads the replicas and leaders of each topic over all brokers. leaders-only:
    changes the order of replicas, and copies nothing. The same snapshot and options give the same plan.

    With --what-if, drain empties the lost brokers, and expand fills the added ones. With --why-not and --backtest, the
    answer is about this plan."""
    _check_questions(output, what_if, why_not, tested_losses)
    if output is PlanFormat.YAML and cluster_name is None:
        raise usage_error(ValueError("-o yaml needs the KafkaCluster of the moves: --cluster NAME"))
    if folder is not None and output is not PlanFormat.KAFKA:
        raise usage_error(ValueError("--batches is for -o kafka"))
    require_planner()
    loads = _get_loads(cluster, snapshot_file, between_looks_seconds, capacities, closed_broker, traffic)
    made, supposed = _make_plan(loads, mode, wishes, what_if)
    if why_not is not None:
        _answer_why_not(why_not, made, output)
        return
    if tested_losses is not None:
        _backtest(tested_losses, made, output, moves)
        return
    if output in _SHOWN:
        _show(made, loads.troubles, supposed, output, moves, throttle)
        return
    say_troubles((*loads.troubles, *made.unknown, *made.left_out))
    if output is PlanFormat.KAFKA:
        _write_kafka_json(made, folder)
        return
    from kontroller.planning.documents import IllegalNameError, InexpressibleError, Manifests, format_manifests

    names = Manifests(
        cluster=cluster_name or "",
        name=name or f"{mode}-{made.compute_hash()[:8]}",
        namespace=namespace,
        bytes_per_second=throttle,
    )
    try:
        for document in [*format_manifests(made, names)]:
            typer.echo(document, nl=False)
    except IllegalNameError as error:
        raise usage_error(error) from error
    except InexpressibleError as error:
        raise failure(error) from error


def _check_questions(output: PlanFormat, what_if: str | None, why_not: str | None, tested_losses: str | None) -> None:
    """End the command if a question has no answer in this format, or two of them want the answer."""
    for option, question, formats in (
        ("--what-if", what_if, _SHOWN),
        ("--why-not", why_not, _ANSWERED),
        ("--backtest", tested_losses, _ANSWERED),
    ):
        if question is not None and output not in formats:
            raise usage_error(ValueError(f"-o {output} is not for {option}: give {' or '.join(formats)}"))
    if why_not is not None and tested_losses is not None:
        raise usage_error(ValueError("--why-not and --backtest are two questions: give one of them"))


def _get_loads(
    cluster: Cluster,
    file: Path | None,
    between_looks_s: float,
    capacities: Path | None,
    closed: list[int] | None,
    traffic: Traffic,
) -> "StoredLoads":
    """Return the loads of a file or of a live cluster. Ends the command if there are none, or the cluster changed."""
    if file is None:
        return take_loads(cluster, between_looks_s, capacities, closed or (), traffic)
    traffic.check()
    if closed:
        raise usage_error(ValueError("--closed-broker is for a live cluster: give it to `kontroller snapshot`"))

    from kontroller.planning.live_cluster import ClusterChangedError, require_unchanged
    from kontroller.planning.snapshot_file import UnusableSnapshotFileError, read_snapshot

    try:
        loads = read_snapshot(file)
    except UnusableSnapshotFileError as error:
        raise usage_error(error) from error
    if cluster.bootstrap_server is not None:

        async def describe(admin: "AdminClient", time: Allowance) -> "Snapshot":
            return await admin.describe_cluster(timeout_ms=time.require_time_ms())

        try:
            require_unchanged(loads.snapshot, cluster.run(describe))
        except ClusterChangedError as error:
            raise failure(error) from error
    return complete(loads, capacities, traffic)


def _make_plan(loads: "StoredLoads", mode: Mode, wishes: Wishes, what_if: str | None) -> "tuple[Plan, tuple[str, ...]]":
    """Return the plan, and the consequences of what is supposed. Ends the command if there is no plan."""
    from controller_planner.goals import Goals, InvalidGoals, Limits, Unsatisfiable
    from controller_planner.goals import Mode as Goal
    from controller_planner.losses import count_pairs
    from controller_planner.planning import make_plan
    from kontroller.planning.losses import UnusableLossesError, read_losses_of_file
    from kontroller.planning.what_if import Supposed, UnclearQuestionError, suppose

    supposed = Supposed(snapshot=loads.snapshot)
    try:
        if what_if is not None:
            supposed = suppose(what_if, loads.snapshot)
        known = wishes.failed_together
        together = () if known is None else count_pairs(read_losses_of_file(known, supposed.snapshot))
        asked = supposed.lost if mode is Mode.DRAIN else supposed.added if mode is Mode.EXPAND else ()
        limits = Limits(
            max_bytes=wishes.max_bytes, max_moves=wishes.max_moves, max_batch_bytes_per_broker=wishes.batch_bytes
        )
        goals = Goals(
            mode=Goal[mode.name],
            brokers=tuple(wishes.broker or asked),
            topics=None if wishes.topic is None else tuple(wishes.topic),
            excluded_topics=tuple(wishes.exclude_topic or ()),
            excluded_brokers=tuple(wishes.exclude_broker or ()),
            racks=None if wishes.rack is None else tuple(wishes.rack),
            replication_factor=wishes.replication_factor,
            below_percent=wishes.below_percent,
            band=wishes.band,
            seed=wishes.seed,
            limits=limits,
            failed_together=tuple(together),
        )
        return make_plan(supposed.snapshot, goals), supposed.lines
    except (InvalidGoals, UnclearQuestionError, UnusableLossesError) as error:
        raise usage_error(error) from error
    except Unsatisfiable as error:
        say_troubles(supposed.lines)
        raise failure(error) from error


def _show(
    made: "Plan",
    troubles: Sequence[str],
    supposed: Sequence[str],
    output: PlanFormat,
    most_moves: int,
    bytes_per_second: int | None,
) -> None:
    if output is PlanFormat.HTML:
        from kontroller.planning.page import format_page

        typer.echo(format_page(made, troubles, supposed, bytes_per_second))
        return
    if output is PlanFormat.JSON:
        from kontroller.planning.documents import make_document

        typer.echo(json.dumps(make_document(made, troubles, supposed, bytes_per_second), ensure_ascii=False))
        return
    from kontroller.planning.tables import format_plan

    for line in format_plan(made, troubles, supposed, most_moves, bytes_per_second):
        typer.echo(line)


def _answer_why_not(question: str, made: "Plan", output: PlanFormat) -> None:
    from kontroller.planning.why_not import UnclearPlaceError, explain_why_not

    try:
        answer = explain_why_not(question, made)
    except UnclearPlaceError as error:
        raise usage_error(error) from error
    if output is PlanFormat.JSON:
        typer.echo(json.dumps(asdict(answer)))
        return
    for line in answer.format_lines():
        typer.echo(line)


def _backtest(given: str, made: "Plan", output: PlanFormat, most: int) -> None:
    from kontroller.planning.losses import UnusableLossesError, format_backtest, make_backtest_document, read_losses

    try:
        losses = read_losses(given, made.snapshot, made.goals.seed)
    except UnusableLossesError as error:
        raise usage_error(error) from error
    if output is PlanFormat.JSON:
        typer.echo(json.dumps(make_backtest_document(made, losses)))
        return
    for line in format_backtest(made, losses, most):
        typer.echo(line)


def _write_kafka_json(made: "Plan", folder: Path | None) -> None:
    from kontroller.planning.documents import format_kafka_json, group_by_batch

    if folder is None:
        typer.echo(format_kafka_json([*made.iterate_moves()]))
        return
    batches = group_by_batch(made)
    digits = len(str(len(batches)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if taken := sorted(folder.glob("batch-*.json")):
            raise usage_error(FileExistsError(f"{taken[0]} exists: give another folder to --batches"))
        for number, moves in enumerate(batches, start=1):
            (folder / f"batch-{number:0{digits}}.json").write_text(f"{format_kafka_json(moves)}\n", encoding="utf-8")
    except OSError as error:
        raise failure(OSError(f"{folder} cannot be written: {error}")) from error
    say_in_one_line(f"{folder} has {len(batches)} files: move one after the other, each when the one before is done")
