"""The planner on generated clusters, held to its bars and compared with other ways to place replicas.

    python -m bench.plan --only "drain" --runs 1

Each instance is planned in a process of its own, start and files included, several times; the median counts. The same
plan is made again here and must be the same. A checker without shared code plays it batch by batch. Its bytes are
compared with a bound by HiGHS, and small clusters with their optimum. The command prints a table, and exits with 1 if a
bar is missed, each of which it names. Times are for an idle machine of two cores."""

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from bench.plan.bars import Result, compute_balance, compute_next_leaders, find_missed, find_missed_optimum
from bench.plan.checker import find_violations
from bench.plan.files import write_snapshot
from bench.plan.instances import INSTANCES, SMALL_INSTANCES, Instance, make_snapshot
from bench.plan.measured import measure_plan
from bench.plan.optimum import NoOptimum, compute_bytes_bound, solve_exactly
from bench.plan.others import OTHERS
from controller_planner.goals import Mode
from controller_planner.loads import Floats, Ints
from controller_planner.plan import Plan
from controller_planner.planning import make_plan
from controller_planner.resources import compute_loads, measure_leaders

_MOST_FOR_OTHERS: Final = 20_000
"""Partitions. The other ways are simple and slow."""
console = Console(highlight=False)


def main(
    only: Annotated[list[str] | None, typer.Option(help="Names of instances; none: all.")] = None,
    runs: Annotated[int, typer.Option(help="Number of measured runs of each instance.", min=1)] = 5,
    skip_small: Annotated[
        bool, typer.Option("--skip-small", help="Leave out the comparison with the optimum.")
    ] = False,
) -> None:
    """Plan, print the table, and exit with 1 if a bar is missed."""
    results: list[Result] = []
    missed: list[str] = []
    for instance in INSTANCES:
        if not only or instance.name in only:
            results.append(_run(instance, runs))
            missed += find_missed(results[-1])
            console.print(f"{instance.name}: done", style="dim")
    console.print(_make_table(results))
    if not skip_small:
        missed += _compare_with_optimum()
    for sentence in missed:
        console.print(f"missed: {sentence}")
    raise typer.Exit(1 if missed else 0)


def _run(instance: Instance, runs: int) -> Result:
    snapshot = make_snapshot(instance)
    with tempfile.TemporaryDirectory(prefix="bench-plan-") as folder:
        file = Path(folder) / "snapshot.npz"
        write_snapshot(snapshot, file)
        costs = [measure_plan(file, instance.goals) for _ in range(runs)]
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
        violations=violations,
        others=dict(_play_others(plan)) if _is_compared(instance) else {},
    )


def _find_least_bytes(plan: Plan) -> float:
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


def _compare_with_optimum() -> Iterator[str]:
    """Compare the plans of small clusters with HiGHS, print a line for each, and yield the bars that are missed."""
    for instance in SMALL_INSTANCES:
        plan = make_plan(make_snapshot(instance), instance.goals)
        try:
            optimum = solve_exactly(plan)
        except NoOptimum as error:
            console.print(f"{instance.name}: no optimum: {error}")
            continue
        excess = float(np.nan_to_num(np.maximum(plan.loads_after / plan.shares - plan.bounds, 0)).sum())
        ratio = plan.total_bytes / optimum.bytes_copied if optimum.bytes_copied > 0 else 1.0
        found = "optimum" if optimum.is_proven else "best found in time"
        console.print(
            f"{instance.name}: {excess:.3f} above the bounds in sum, {ratio:.3f} times the bytes;"
            f" HiGHS ({found}): {optimum.excess:.3f} above, {optimum.bytes_copied / 1e9:.1f} GB"
        )
        yield from find_missed_optimum(instance.name, excess, ratio, optimum)


def _make_table(results: list[Result]) -> Table:
    table = Table("instance", "s", "CPU s", "GiB", "before", "after", "TB", "times bound", "next leaders", "others")
    for result in results:
        table.add_row(
            result.instance.name,
            f"{result.seconds:.2f}",
            f"{result.processor_seconds:.2f}",
            f"{result.memory_gib:.2f}",
            " ".join(f"{value:.2f}" for value in result.balance_before),
            " ".join(f"{value:.3f}" for value in result.balance),
            f"{result.total_bytes / 1e12:.2f}",
            f"{result.total_bytes / result.least_bytes:.3f}" if result.least_bytes else "-",
            f"{result.next_leaders[0]:.0f} of {result.next_leaders[1]:.0f}",
            "; ".join(
                f"{name} {copied / max(result.total_bytes, 1):.2f} x ({balance.max():.2f})"
                for name, (copied, balance) in result.others.items()
            ),
        )
    return table


if __name__ == "__main__":
    typer.run(main)
