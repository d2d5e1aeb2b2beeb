"""The fewest bytes that can bring a cluster within its bounds, by HiGHS.

`compute_bytes_bound` is for any size: it relaxes the problem broker by broker, and asks for the cheapest parts of
replicas whose departure brings a broker to its bounds. No plan can copy fewer. `solve_exactly` is for small clusters: it
decides each replica and leader in an integer program."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import highspy
import numpy as np

from controller_planner.loads import Bools, Floats, Ints, LoadSnapshot
from controller_planner.plan import Plan

_OF_A_REPLICA: Final = 3
_GAP: Final = 0.005
_SECONDS: Final = 30.0
_TOLERANCE: Final = 1e-6
_FEASIBLE: Final = int(highspy.SolutionStatus.kSolutionStatusFeasible)
Row = tuple[float, Sequence[int], Sequence[float], float]
"""The least value, columns, their factors, the greatest value."""


class NoOptimum(Exception):
    """HiGHS found no arrangement. The message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimum:
    """The best arrangement of a small cluster."""

    excess: float
    """The sum of the excesses of all brokers and resources over their bounds, as multiples of their shares."""
    bytes_copied: float
    is_proven: bool
    """False: the time ended before HiGHS knew that there is no better one, within its gap of 0.5 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Least:
    reached: float
    bound: float
    """No arrangement is below it."""
    is_proven: bool


def compute_bytes_bound(plan: Plan) -> float:
    """Return bytes that any plan within the same bounds must copy, by the relaxation of the departures.

    Each broker must lose its excess, and a partition that is too crowded in racks at least one replica. Without such
    partitions, the program is solved broker by broker."""
    replicas, weights = plan.snapshot.partitions.replicas, _get_weights(plan.snapshot)
    crowded = _find_crowded(plan.snapshot)
    scale = float(weights[:, 1].sum())
    needed = np.nan_to_num(plan.loads_before / plan.shares - plan.bounds)[:, :_OF_A_REPLICA]
    programs: list[tuple[list[Ints], list[tuple[Ints, int, int]]]] = []
    rows_of = {
        broker: np.flatnonzero(replicas.ravel() == broker)
        for broker in range(len(needed))
        if (needed[broker] > 0).any()
    }
    if crowded.any():
        must = [np.flatnonzero(replicas[at] >= 0) + at * replicas.shape[1] for at in np.flatnonzero(crowded)]
        programs.append(
            (must, [(slots, broker, at) for broker, slots in rows_of.items() for at in _find(needed[broker])])
        )
    else:
        programs += [([], [(slots, broker, at) for at in _find(needed[broker])]) for broker, slots in rows_of.items()]
    bound = 0.0
    for must, relief in programs:
        columns = np.unique(np.concatenate([*must, *(slots for slots, _, _ in relief)]))
        partitions = columns // replicas.shape[1]
        rows: list[Row] = [
            (1.0, np.searchsorted(columns, slots).tolist(), [1.0] * len(slots), np.inf) for slots in must
        ]
        for slots, broker, at in relief:
            found = np.searchsorted(columns, slots)
            factors = weights[partitions[found], at] / plan.shares[broker, at]
            rows.append((float(needed[broker, at]), found.tolist(), factors.tolist(), np.inf))
        bound += _minimize(weights[partitions, 1] / scale, rows, integers=0).reached * scale
    return bound


def _find(needed: Floats) -> list[int]:
    return [int(at) for at in np.flatnonzero(needed > 0)]


def _find_crowded(snapshot: LoadSnapshot) -> Bools:
    """Return True for each partition with more replicas in a rack than it must have, if all racks are large enough."""
    names = [_name_rack(rack, at) for at, rack in enumerate(snapshot.brokers.racks)]
    index = {name: at for at, name in enumerate(dict.fromkeys(names))}
    racks = np.append(np.array([index[name] for name in names]), -1)[snapshot.partitions.replicas]
    most = -(-snapshot.partitions.count_replicas() // len(index))
    return np.asarray(np.stack([(racks == rack).sum(axis=1) for rack in range(len(index))]).max(axis=0) > most)


def compute_excess_bound(plan: Plan) -> float:
    """Return the sum of excesses over the bounds that the leaders of a small cluster force on any plan, or 0.

    Each partition may be led by any broker here, and replicas cost nothing. The result is HiGHS' proven lower bound of
    that, so no plan comes below it, also if the time ends before HiGHS knows the optimum."""
    number, brokers = len(plan.snapshot.partitions), len(plan.snapshot.brokers)
    leads = np.arange(number * brokers).reshape(number, brokers)
    rows: list[Row] = [(1.0, columns, [1.0] * brokers, 1.0) for columns in leads.tolist()]
    loads = np.column_stack([_get_sent(plan), np.ones(number)])
    slacks = brokers * loads.shape[1]
    for broker in range(brokers):
        for at in range(loads.shape[1]):
            share, bound = (float(each[broker, _OF_A_REPLICA + at]) for each in (plan.shares, plan.bounds))
            slack = leads.size + broker * loads.shape[1] + at
            rows.append((0.0, [*leads[:, broker].tolist(), slack], [*(loads[:, at] / share).tolist(), -1.0], bound))
    least = _minimize(np.concatenate([np.zeros(leads.size), np.ones(slacks)]), rows, integers=leads.size)
    return max(least.bound, 0.0)


def solve_exactly(plan: Plan) -> Optimum:
    """Return the least excess over the bounds of a plan, and the fewest bytes that reach it. Raises NoOptimum.

    A small cluster often cannot keep all its bounds, because replicas cannot be divided. So a first program finds the
    least sum of the excesses, and a second the fewest bytes among the arrangements with so little excess."""
    snapshot, weights = plan.snapshot, _get_weights(plan.snapshot)
    number, brokers = len(snapshot.partitions), len(snapshot.brokers)
    pairs = number * brokers
    rows: list[Row] = []
    racks = np.array([_name_rack(rack, at) for at, rack in enumerate(snapshot.brokers.racks)])
    names = np.unique(racks)
    slacks = brokers * len(plan.resources)
    cost = np.zeros(2 * pairs + slacks)
    for partition in range(number):
        row = snapshot.partitions.replicas[partition]
        row = row[row >= 0]
        cost[partition * brokers : (partition + 1) * brokers] = weights[partition, 1] / weights[:, 1].sum()
        cost[partition * brokers + row] = 0
        holds = [partition * brokers + at for at in range(brokers)]
        leads = [pairs + column for column in holds]
        rows.append((len(row), holds, [1.0] * brokers, len(row)))
        rows.append((1, leads, [1.0] * brokers, 1))
        rows += [(0, [hold, lead], [1.0, -1.0], 1) for hold, lead in zip(holds, leads, strict=True)]
        for rack in names:
            members = [partition * brokers + int(at) for at in np.flatnonzero(racks == rack)]
            rows.append((0, members, [1.0] * len(members), -(-len(row) // len(names))))
    loads = np.column_stack([weights, _get_sent(plan), np.ones(number)])
    for broker in range(brokers):
        columns = [partition * brokers + broker for partition in range(number)]
        for at in range(len(plan.resources)):
            used = columns if at < _OF_A_REPLICA else [pairs + column for column in columns]
            slack = 2 * pairs + broker * len(plan.resources) + at
            factors = [*(loads[:, at] / plan.shares[broker, at]), -1.0]
            rows.append((0, [*used, slack], factors, float(plan.bounds[broker, at])))
    excess_only = np.concatenate([np.zeros(2 * pairs), np.ones(slacks)])
    least = _minimize(excess_only, rows, integers=2 * pairs)
    all_slacks = list(range(2 * pairs, 2 * pairs + slacks))
    rows.append((0, all_slacks, [1.0] * slacks, least.reached + _TOLERANCE))
    fewest = _minimize(cost, rows, integers=2 * pairs)
    total = float(weights[:, 1].sum())
    return Optimum(
        excess=least.reached,
        bytes_copied=fewest.reached * total,
        is_proven=least.is_proven and fewest.is_proven,
    )


def _name_rack(rack: str | None, broker: int) -> str:
    """Return a name for the rack of a broker; one without a rack has one of its own."""
    return f"rack {rack}" if rack is not None else f"broker {broker}"


def _get_sent(plan: Plan) -> Floats:
    """Return what the leader of each partition sends: to consumers, and to each follower."""
    partitions = plan.snapshot.partitions
    return partitions.out_bytes_per_second + (partitions.count_replicas() - 1) * partitions.in_bytes_per_second


def _get_weights(snapshot: LoadSnapshot) -> Floats:
    partitions = snapshot.partitions
    return np.stack([np.ones(len(partitions)), partitions.size_bytes, partitions.in_bytes_per_second], axis=1)


def _minimize(cost: Floats, rows: Sequence[Row], *, integers: int) -> _Least:
    """Return the least cost. The first columns are 0 or 1 if they are integers, the others are not negative."""
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(cost), len(rows)
    upper = np.ones(len(cost))
    upper[integers:] = np.inf if integers else 1.0
    model.col_cost_, model.col_lower_, model.col_upper_ = cost, np.zeros(len(cost)), upper
    model.row_lower_ = np.array([row[0] for row in rows], dtype=np.float64)
    model.row_upper_ = np.array([row[3] for row in rows], dtype=np.float64)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.concatenate([[0], np.cumsum([len(row[1]) for row in rows])])
    model.a_matrix_.index_ = np.concatenate([np.asarray(row[1], dtype=np.int32) for row in rows])
    model.a_matrix_.value_ = np.concatenate([np.asarray(row[2], dtype=np.float64) for row in rows])
    if integers:
        kinds = highspy.HighsVarType
        model.integrality_ = [kinds.kInteger if at < integers else kinds.kContinuous for at in range(len(cost))]
    new_solver: Any = highspy.Highs
    solver = new_solver()
    for name, value in (("output_flag", False), ("threads", 1), ("time_limit", _SECONDS), ("mip_rel_gap", _GAP)):
        solver.setOptionValue(name, value)
    solver.passModel(model)
    solver.run()
    status, info = solver.getModelStatus(), solver.getInfo()
    if status not in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kTimeLimit):
        raise NoOptimum(solver.modelStatusToString(status))
    if not np.isfinite(info.objective_function_value) or info.primal_solution_status != _FEASIBLE:
        raise NoOptimum(f"HiGHS found no arrangement in {_SECONDS:g} s")
    is_proven = status == highspy.HighsModelStatus.kOptimal
    reached = float(info.objective_function_value)
    return _Least(reached=reached, bound=float(info.mip_dual_bound) if integers else reached, is_proven=is_proven)
