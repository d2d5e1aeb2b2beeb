"""Writes a report: the page, and beside it the tables that it is made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame

from kontroller.history.answers.options import Options
from kontroller.history.reports.export import exported, rows_in
from kontroller.history.reports.limits import Limits
from kontroller.history.reports.objective import Objective
from kontroller.history.reports.period import Period
from kontroller.history.reports.rendering.page import page
from kontroller.history.reports.selection.before import figures_before
from kontroller.history.reports.selection.partial_days import of_the_period
from kontroller.history.reports.selection.report_facts import selected
from kontroller.history.reports.selection.tables import tables_of
from kontroller.history.schemas import PARTITION_INTERVALS


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSummary:
    """What a command line says when the report is written."""

    page: Path
    page_bytes: int
    tables: tuple[Path, ...]
    """The Parquet files; beside each lies one of JSON lines."""
    clusters: int
    availability: float | None
    """None: nothing is known."""
    leaderless_seconds: float
    unknown_seconds: float
    """By the clock, summed over clusters."""
    unclean_elections: int
    violations: int
    findings: int
    missing: tuple[str, ...]
    """Tables that were not given."""


def write_report(
    tables: Mapping[str, DataFrame],
    output: Path,
    *,
    period: Period,
    now: datetime | None = None,
    limits: Limits | None = None,
    options: Options | None = None,
    objective: Objective | None = None,
) -> ReportSummary:
    """Writes `output`/index.html and `output`/tables/NAME.parquet and NAME.json.

    `tables`: by the names of `schemas`, computed or read; the page names those missing. Rows outside `period` are left out;
    intervals and days that it touches are whole in the files. What the page says is of the period alone: of days that it
    cuts, answers are computed anew, with the `options` that the given ones were computed with. The same tables have the
    figures of the period before, which is as long. `objective`: of availability; the page shows its budget. The same rows
    make the same page, unless `now` is given to be named in it.

    Raises ValueError where no table is given, OSError where `output` cannot be written.
    """
    limits, options = limits or Limits(), options or Options()
    cut = tables_of(tables, period)
    files = exported(cut, output / "tables")
    stored = cut.stored_in({name: path for name, path in files.items() if rows_in(path)})
    try:
        before = figures_before(tables, period)
        with of_the_period(stored, tables, options) as exact:
            report = selected(exact, limits, options=options, before=before, objective=objective)
    finally:
        stored[PARTITION_INTERVALS].unpersist()
    path = output / "index.html"
    path.write_text(page(report, now=now, limits=limits), encoding="utf-8")
    return ReportSummary(
        page=path,
        page_bytes=path.stat().st_size,
        tables=tuple(files.values()),
        clusters=report.clusters_total,
        availability=report.uptime.availability,
        leaderless_seconds=report.uptime.leaderless_us / 1_000_000,
        unknown_seconds=report.unknown_us / 1_000_000,
        unclean_elections=report.listings["unclean"].total,
        violations=report.listings["violations"].total,
        findings=report.listings["findings"].total,
        missing=report.missing,
    )
