"""The planner on generated clusters, held to its bars and compared with other ways to place replicas.

    python -m bench.plan --only "drain" --runs 1

Each instance is planned in a process of its own, start and files included, several times; the median counts. The same
plan is made again here and must be the same. A checker without shared code plays it batch by batch. Its bytes are
compared with a bound by HiGHS, and small clusters with their optimum. The command prints its tables, and exits with 1 if
a bar is missed, each of which it names. Times are for an idle machine of two cores."""

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer
from rich.console import Console

from bench.plan.bars import (
    Result,
    compute_balance,
    compute_excess,
    compute_next_leaders,
    find_missed,
    find_missed_backtest,
    find_missed_optimum,
)
from bench.plan.checker import find_disk_limits, find_violations, read_assignment, read_sizes, sum_bytes
from bench.plan.files import write_snapshot
from bench.plan.instances import INSTANCES, SMALL_INSTANCES, Instance, make_snapshot
from bench.plan.measured import measure_plan
from bench.plan.optimum import NoOptimum, compute_bytes_bound, compute_excess_bound, solve_exactly
from bench.plan.others import OTHERS
from bench.plan.plot import draw_ways
from bench.plan.report import (
    BacktestRow,
    InstanceRow,
    SmallRow,
    make_backtests_table,
    make_instances_table,
    make_others_table,
    make_small_table,
    write_docs,
)
from bench.plan.report import Result as Report
from bench.report.page import DOCS
from bench.setup.results_file import ResultsFile
from controller_planner.goals import Mode
from controller_planner.loads import Floats, Ints
from controller_planner.losses import backtest, list_losses
from controller_planner.plan import Plan
from controller_planner.planning import make_plan
from controller_planner.resources import compute_loads, measure_leaders

_MOST_FOR_OTHERS: Final = 20_000
"""Partitions. The other ways are simple and slow."""
_MOST_SOLVED: Final = 60
"""Partitions up to which HiGHS decides each leader."""
_BACKTEST: Final = "backtest"
_BACKTESTED: Final = next(instance for instance in INSTANCES if instance.name == "100,000 on 60")
_LOSSES: Final = 1_000
RESULTS: Final = Path(__file__).parents[1] / "results" / "plan.json"
console = Console(highlight=False, soft_wrap=True, stderr=True)


def main(
    only: Annotated[list[str] | None, typer.Option(help="Names of instances, or backtest; none: all.")] = None,
    runs: Annotated[int, typer.Option(help="Number of measured runs of each instance.", min=1)] = 5,
    skip_small: Annotated[
        bool, typer.Option("--skip-small", help="Leave out the comparison with the optimum.")
    ] = False,
    docs: Annotated[bool, typer.Option("--docs", help="Write the tables of docs/performance.md.")] = False,
) -> None:
    """Plan, print the tables, and exit with 1 if a bar is missed. Results are saved after each instance."""
    if unknown := set(only or ()) - {_BACKTEST, *(instance.name for instance in INSTANCES)}:
        raise typer.BadParameter(f"there is no instance {', '.join(sorted(unknown))}", param_hint="--only")
    results = ResultsFile(RESULTS, {"runs": runs}, "instances", "small", "backtests")
    for instance in INSTANCES:
        if not only or instance.name in only:
            row = _make_row(_run(instance, runs))
            results.add("instances", row.model_dump(mode="json"))
            for sentence in row.missed:
                console.print(f"missed: {sentence}")
    if not only or _BACKTEST in only:
        backtested = _run_backtest(runs)
        results.add("backtests", backtested.model_dump(mode="json"))
        console.print(f"{backtested.instance}: {backtested.losses} losses in {backtested.seconds:.2f} s")
    if not skip_small:
        for small in _compare_with_optimum():
            results.add("small", small.model_dump(mode="json"))
            console.print(f"{small.instance}: {small.times_bytes:.3f} times the bytes of HiGHS")
    found = Report.model_validate(results.content)
    for table in (make_instances_table, make_others_table, make_small_table, make_backtests_table):
        typer.echo(f"\n{table(found)}")
    typer.echo(f"\nwrote {RESULTS}")
    if docs:
        for path in (*write_docs([RESULTS]), *draw_ways(found, DOCS)):
            typer.echo(f"wrote {path}")
    missed = found.list_missed()
    for sentence in missed:
        typer.echo(f"missed: {sentence}")
    raise typer.Exit(1 if missed else 0)


def _run(instance: Instance, runs: int) -> Result:
    snapshot = make_snapshot(instance)
    with tempfile.TemporaryDirectory(prefix="bench-plan-") as folder:
        file = Path(folder) / "snapshot.npz"
        write_snapshot(snapshot, file)
        costs = []
        for run in range(1, runs + 1):
            costs.append(measure_plan(file, instance.goals))
            console.print(f"{instance.name}: run {run} of {runs}: {costs[-1].processor_seconds:.2f} s of the processor")
    console.print(f"{instance.name}: checking the plan")
    plan = make_plan(snapshot, instance.goals)
    replicas = snapshot.partitions.replicas.copy()
    replicas[plan.partition] = plan.after[:, : replicas.shape[1]]
    violations = find_violations(plan)
    if {cost.plan_hash for cost in costs} != {plan.compute_hash()}:
        violations.append("the same snapshot and seed gave another plan")
    return Result(
        instance=instance,
        seconds=statistics.median(cost.seconds for cost in costs),
        processor_seconds=statistics.median(cost.processor_seconds for cost in costs),
        memory_gib=max(cost.memory_gib for cost in costs),
        balance_before=compute_balance(plan, plan.loads_before),
        balance=compute_balance(plan, plan.loads_after),
        over_bound=np.nan_to_num(plan.loads_after / plan.shares - plan.bounds).max(axis=0),
        total_bytes=plan.total_bytes,
        least_bytes=_find_least_bytes(plan),
        next_leaders=compute_next_leaders(plan, replicas),
        excess=compute_excess(plan),
        least_excess=compute_excess_bound(plan) if instance.partitions <= _MOST_SOLVED else 0.0,
        violations=violations,
        others=dict(_play_others(plan)) if _is_compared(instance) else {},
    )


def _find_least_bytes(plan: Plan) -> float:
    if plan.goals.mode is Mode.RELIEVE:
        # Each broker must lose at least what it has above its limit.
        used, limits = sum_bytes(read_assignment(plan.snapshot), read_sizes(plan.snapshot)), find_disk_limits(plan)
        return sum(max(0.0, used[broker] - limits[broker]) for broker in plan.goals.brokers)
    if plan.goals.mode is not Mode.DRAIN:
        return compute_bytes_bound(plan)
    drained = np.isin(plan.snapshot.brokers.ids[plan.snapshot.partitions.replicas], plan.goals.brokers)
    return float((drained.sum(axis=1) * plan.snapshot.partitions.size_bytes).sum())


def _is_compared(instance: Instance) -> bool:
    small = instance.partitions <= _MOST_FOR_OTHERS
    return small and instance.mode is Mode.REBALANCE and instance.history != "uneven"


def _play_others(plan: Plan) -> Iterator[tuple[str, tuple[float, Floats]]]:
    for name, place in OTHERS.items():
        replicas = place(plan.snapshot)
        yield name, (_count_bytes(plan, replicas), compute_balance(plan, _sum_loads(plan, replicas)))


def _sum_loads(plan: Plan, replicas: Ints) -> Floats:
    partitions = plan.snapshot.partitions
    weights = np.stack([np.ones(len(partitions)), partitions.size_bytes, partitions.in_bytes_per_second], axis=1)
    of_leader = measure_leaders(plan.snapshot, partitions.count_replicas())
    return compute_loads(replicas, weights, of_leader, len(plan.snapshot.brokers))[:-1]


def _count_bytes(plan: Plan, replicas: Ints) -> float:
    before = plan.snapshot.partitions.replicas
    new = (replicas >= 0) & ~(replicas[:, :, None] == before[:, None, :]).any(axis=2)
    return float((new.sum(axis=1) * plan.snapshot.partitions.size_bytes).sum())


def _run_backtest(runs: int) -> BacktestRow:
    """Return the cost of losing each broker, each rack and random pairs, a thousand losses in all."""
    snapshot = make_snapshot(_BACKTESTED)
    losses = list_losses(snapshot, _LOSSES)[:_LOSSES]
    costs = []
    for _ in range(runs):
        began = time.perf_counter()
        backtest(snapshot, losses)
        costs.append(time.perf_counter() - began)
    seconds = statistics.median(costs)
    return BacktestRow(
        instance=_BACKTESTED.name,
        losses=len(losses),
        partitions=len(snapshot.partitions),
        seconds=round(seconds, 3),
        missed=tuple(find_missed_backtest(_BACKTESTED.name, seconds)),
    )


def _compare_with_optimum() -> Iterator[SmallRow]:
    """Compare the plans of small clusters with HiGHS."""
    for instance in SMALL_INSTANCES:
        plan = make_plan(make_snapshot(instance), instance.goals)
        try:
            optimum = solve_exactly(plan)
        except NoOptimum as error:
            console.print(f"{instance.name}: no optimum: {error}")
            continue
        excess = compute_excess(plan)
        ratio = plan.total_bytes / optimum.bytes_copied if optimum.bytes_copied > 0 else 1.0
        yield SmallRow(
            instance=instance.name,
            excess=round(excess, 4),
            optimum_excess=round(optimum.excess, 4),
            times_bytes=round(ratio, 4),
            is_proven=optimum.is_proven,
            missed=tuple(find_missed_optimum(instance.name, excess, ratio, optimum)),
        )


def _make_row(result: Result) -> InstanceRow:
    instance = result.instance
    return InstanceRow(
        instance=instance.name,
        mode=instance.mode.value,
        partitions=instance.partitions,
        brokers=instance.brokers,
        seconds=round(result.seconds or 0, 3),
        processor_seconds=round(result.processor_seconds or 0, 3),
        memory_gib=round(result.memory_gib or 0, 3),
        before=tuple(result.balance_before.round(4).tolist()),
        after=tuple(result.balance.round(4).tolist()),
        gigabytes=round(result.total_bytes / 1e9, 1),
        times_bound=round(result.total_bytes / result.least_bytes, 4) if result.least_bytes else None,
        next_leaders=(int(result.next_leaders[0]), int(result.next_leaders[1])),
        others={
            name: (round(copied / max(result.total_bytes, 1), 3), round(float(balance.max()), 3))
            for name, (copied, balance) in result.others.items()
        },
        missed=tuple(find_missed(result)),
    )


if __name__ == "__main__":
    typer.run(main)
