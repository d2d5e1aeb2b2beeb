"""The error budget on the page: bars for the whole, and columns for the tables of topics, namespaces and clusters."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kontroller.history.reports import words
from kontroller.history.reports.facts import Column, Listed, Report, Value, seconds
from kontroller.history.reports.objective import Budget, Objective
from kontroller.history.reports.rendering.headline import honest
from kontroller.history.reports.tones import Tone, tone_of_budget

COLUMNS = {
    "availability": Column(
        title="Budget spent",
        field="budget",
        kind="spent",
        hint="of the time without a leader that the objective allows",
    ),
    "writable": Column(
        title="Writers' budget", field="writers_budget", kind="spent", hint="the same, including time under min ISR"
    ),
}
"""The budget columns, by the field of the ratio that each is computed from."""
WITH_BUDGET = ("topics", "namespaces", "clusters")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """A budget in words. `percent` is the spent part, at most 100."""

    label: str
    said: str
    percent: float
    tone: Tone


def budgets(report: Report) -> tuple[Spent, ...]:
    """Return the budgets of the page, or none if it has no objective."""
    if report.objective is None:
        return ()
    uptime, objective = report.uptime, report.objective
    return (
        _describe_budget(
            report, f"Error budget of {objective.said}", objective.budget(uptime.known_us, uptime.leaderless_us)
        ),
        _describe_budget(
            report,
            "Including time under min ISR",
            objective.budget(uptime.known_us, uptime.leaderless_us + uptime.under_us),
        ),
    )


def _describe_budget(report: Report, label: str, budget: Budget) -> Spent:
    part = budget.spent_share
    if part is None:
        return Spent(label=label, said="nothing is known, so there is no budget", percent=0, tone="unknown")
    allowed, left = words.duration(seconds(budget.allowed_us)), words.duration(seconds(abs(budget.left_us)))
    rest = f"{left} left" if budget.left_us >= 0 else f"overspent by {left}"
    tone = tone_of_budget(part)
    said = f"{words.format_spent(part)} of {allowed} spent, {rest}"
    return Spent(label=label, said=said, percent=round(min(100.0, 100 * part), 2), tone=honest(report, tone))


def add_budgets(listed: Listed, objective: Objective | None) -> Listed:
    """Add a column for each budget after the column of its ratio."""
    if objective is None or listed.name not in WITH_BUDGET:
        return listed
    columns = [made for column in listed.columns for made in (column, COLUMNS.get(column.field)) if made is not None]
    return replace(listed, columns=tuple(columns), rows=tuple(_add_row_budgets(row, objective) for row in listed.rows))


def _add_row_budgets(row: Mapping[str, Value], objective: Objective) -> Mapping[str, Value]:
    more: dict[str, Value] = {}
    for field, column in COLUMNS.items():
        ratio = row[field]
        more[column.field] = objective.compute_spent_share(ratio) if isinstance(ratio, float) else None
    return {**row, **more}
