"""Writes a report: the page, and the tables behind it as files."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame

from kontroller.history.answers.options import Options
from kontroller.history.reports.export import export_levels, export_tables, replace_file, rows_in
from kontroller.history.reports.facts import Bounds
from kontroller.history.reports.limits import Limits
from kontroller.history.reports.names import Names
from kontroller.history.reports.objective import Objective
from kontroller.history.reports.period import Period
from kontroller.history.reports.rendering.page import page
from kontroller.history.reports.selection.before import figures_before
from kontroller.history.reports.selection.partial_days import restrict_to_period
from kontroller.history.reports.selection.report_facts import select_facts
from kontroller.history.reports.selection.tables import tables_of
from kontroller.history.schemas import PARTITION_INTERVALS


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSummary:
    """The figures that the command prints after it has written the report."""

    page: Path
    tables: tuple[Path, ...]
    """The Parquet files. Each has a file of JSON lines beside it."""
    clusters: int
    availability: float | None
    """None if nothing is known."""
    bounds: Bounds | None
    """The availability if all unknown time was down, and if all of it was up."""
    leaderless_seconds: float
    unclean_elections: int
    violations: int
    findings: int
    missing: tuple[str, ...]
    """The tables that were not given."""


def write_report(
    tables: Mapping[str, DataFrame],
    output: Path,
    *,
    period: Period,
    limits: Limits | None = None,
    options: Options | None = None,
    objective: Objective | None = None,
    names: Names | None = None,
    now: datetime | None = None,
) -> ReportSummary:
    """Write `output`/index.html and `output`/tables/NAME.parquet and NAME.json.

    `tables`: by the names of `schemas`, computed or read; the page names missing ones. Rows outside `period` are
    dropped; intervals and days that it touches are complete in the files. The page covers the period only: answers of
    partial days are recomputed, with the `options` that the given answers were computed with. The previous period has
    the same length. `objective`: of availability; the page shows its budget. `names`: of clusters and topics. `now`:
    the time by this machine's clock, to find clusters whose clock is ahead. The same rows give the same page.

    Raises ValueError if no table is given, OSError if `output` cannot be written.
    """
    limits, options = limits or Limits(), options or Options()
    cut = tables_of(tables, period, limits, now)
    files = export_tables(cut, output / "tables")
    stored = cut.read_stored({name: path for name, path in files.items() if rows_in(path)})
    try:
        before = figures_before(tables, period)
        with restrict_to_period(stored, tables, options) as exact:
            report = select_facts(exact, limits, options=options, before=before, objective=objective, given=tables)
    finally:
        stored[PARTITION_INTERVALS].unpersist()
    levels = export_levels(report.levels, objective, names or Names(), output / "tables")
    path = output / "index.html"
    with replace_file(path) as file:
        file.write(page(replace(report, names=names or Names()), limits=limits).encode())
    return ReportSummary(
        page=path,
        tables=(*files.values(), levels),
        clusters=report.clusters_total,
        availability=report.uptime.availability,
        bounds=report.uptime.bounds,
        leaderless_seconds=report.uptime.leaderless_us / 1_000_000,
        unclean_elections=report.listings["unclean"].total,
        violations=report.listings["violations"].total,
        findings=report.listings["findings"].total,
        missing=report.missing,
    )
