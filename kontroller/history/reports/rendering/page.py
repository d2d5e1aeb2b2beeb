"""The HTML page of a report: style, script and pictures are inline, and every name is escaped.

Its content security policy allows only its own script, and no requests.
"""

from collections.abc import Mapping, Sequence
from functools import cache

from jinja2 import Environment
from markupsafe import Markup, escape

from kontroller.history.reports import words
from kontroller.history.reports.facts import Column, Listed, Report, Value, seconds
from kontroller.history.reports.limits import Limits
from kontroller.history.reports.rendering import headline
from kontroller.history.reports.rendering.budgets import add_budgets, budgets
from kontroller.history.reports.rendering.cells import RIGHT_ALIGNED, cells
from kontroller.history.reports.rendering.figures import figures
from kontroller.history.reports.rendering.fleet import fleet, reasons_of
from kontroller.history.reports.rendering.leads import leads_of_clusters
from kontroller.history.reports.rendering.naming import add_names
from kontroller.history.reports.rendering.pictures import Pictures
from kontroller.history.reports.rendering.service import draw_budgets, list_levels, service
from kontroller.history.reports.rendering.telling import At, Piece, clock, tell_story
from kontroller.pages.frame import make_environment


def page(report: Report, *, limits: Limits | None = None) -> str:
    """Return the whole page. The same facts give the same page."""
    limits = limits or Limits()
    return _environment().get_template("page.html").render(
        report=report,
        limits=limits,
        pictures=Pictures(report=report, limits=limits),
        title=headline.title_of(report),
        lead=headline.lead_of(report),
        panels=headline.panels(report),
        budgets=budgets(report),
        objective=None if report.objective is None else report.objective.said,
        figures=figures(report),
        fleet=fleet(report, limits),
        reasons=reasons_of(report),
        service=service(report),
        budget_lines=draw_budgets(report),
        levels=list_levels(report, limits),
        leads_of_clusters=leads_of_clusters(report),
        written=words.format_span(report.period.began_us, report.period.ended_us),
        length=words.duration(seconds(report.period.ended_us - report.period.began_us)),
    )  # fmt: skip


@cache
def _environment() -> Environment:
    made = make_environment("kontroller.history.reports.rendering")
    made.filters.update(
        moment=lambda at_us: _time(words.moment(at_us), at_us),
        span=_span,
        seconds=seconds,
        duration=words.duration,
        number=words.number,
        percent=words.percent,
        sentences=_sentences,
    )
    made.globals.update(
        cells=cells,
        columns_of=columns_of,
        format_count=words.format_count,
        tell_story=tell_story,
        add_budgets=add_budgets,
        add_names=add_names,
        right_aligned=RIGHT_ALIGNED,
    )
    return made


def _time(text: str, at_us: int) -> Markup:
    """Return a time in UTC. The page's script adds the reader's local time."""
    return Markup('<time datetime="{}">{}</time>').format(words.instant(at_us), text)


def _span(ends: tuple[int, int]) -> Markup:
    """Return a span of time in UTC."""
    began, ended = ends
    return Markup('<span class="span" data-from="{}" data-to="{}">{}</span>').format(
        words.instant(began), words.instant(ended), words.format_span(began, ended)
    )


def _sentences(pieces: Sequence[Piece]) -> Markup:
    """Return the sentences with every name escaped."""
    return Markup("").join(
        _time(clock(piece), piece.at_us) if isinstance(piece, At) else escape(words.visible(piece)) for piece in pieces
    )


def columns_of(listed: Listed, many_clusters: bool) -> tuple[Column, ...]:
    """Return the columns to show: no cluster column for a single cluster, and no optional column that is empty in all
    rows."""
    return tuple(
        column
        for column in listed.columns
        if (many_clusters or column.field != "cluster_id") and _says_something(column, listed.rows)
    )


def _says_something(column: Column, rows: tuple[Mapping[str, Value], ...]) -> bool:
    return column.kind not in {"flag", "text", "lines", "spent"} or any(row[column.field] for row in rows)
