"""The service level on the page: availability, budget and burn rates of the last 28 days, and the outlook in words."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from markupsafe import Markup

from kontroller.history.reports import words
from kontroller.history.reports.facts import Column, Listed, Report, Value, seconds
from kontroller.history.reports.limits import Limits
from kontroller.history.reports.plots import budget_line
from kontroller.history.reports.service_levels import (
    ALERTS,
    BUDGET_US,
    BurnRate,
    Level,
    Outlook,
    Span,
    foresee,
    rate_burns,
)
from kontroller.history.reports.tones import MOSTLY_KNOWN, SIGNS, Tone, tone_of, tone_of_budget

TABLE: Final = "service_levels"
LASTS: Final = "the budget lasts at the rate of the last 3 days"
_CLUSTER: Final = (
    Column(title="Cluster", field="cluster_id"),
    Column(title="At least", field="at_least", kind="ratio", hint="availability if all unknown time was down"),
    Column(title="At most", field="at_most", kind="ratio", hint="availability if all unknown time was up"),
)
_BUDGET: Final = (
    Column(title="Budget spent", field="spent", kind="spent", hint="at least: if all unknown time was up"),
    Column(title="At worst", field="most_spent", kind="spent", hint="if all unknown time was down"),
    *(
        Column(
            title=f"Burn rate, {words.duration(seconds(each.window_us))}",
            field=f"burn_{each.window_us}",
            kind="rate",
            hint=f"at least; too high from {float(each.rate):g} on",
        )
        for each in ALERTS
    ),
    Column(title="Outlook", field="outlook"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """A figure of the service level."""

    label: str
    value: str
    note: str
    tone: Tone

    @property
    def sign(self) -> str:
        return SIGNS[self.tone]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The service level of all clusters of the page together."""

    gauges: tuple[Gauge, ...]
    said: str
    """The outlook and what is unknown, as sentences."""
    tone: Tone


def service(report: Report) -> Service | None:
    """Return the service level, or None if nothing is known of the last 28 days."""
    level = report.level
    if level is None or level.budget.known_us <= 0:
        return None
    return Service(
        gauges=(gauges := _list_gauges(report, level)), said=_describe(report, level), tone=_find_worst(gauges)
    )


def _list_gauges(report: Report, level: Level) -> tuple[Gauge, ...]:
    available, objective = level.budget.availability, report.objective
    ratio = None if available is None else available[1]
    if objective is None:
        tone = _be_honest(level, tone_of(ratio))
        return (Gauge(label="Available", value=words.format_bounds(available), note="28 days", tone=tone),)
    spent = level.budget.compute_spent(objective.allowance)
    tone = "unknown" if spent is None else _be_honest(level, tone_of_budget(float(spent[0])))
    return (
        Gauge(label="Available", value=words.format_bounds(available), note=f"objective {objective.said}", tone=tone),
        Gauge(label="Budget spent", value=_format_span(spent, words.format_spent), note="of 28 days", tone=tone),
        *(_make_gauge(burn) for burn in rate_burns(level, objective.allowance)),
    )


def _make_gauge(burn: BurnRate) -> Gauge:
    return Gauge(
        label=f"Burn rate, {words.duration(seconds(burn.alert.window_us))}",
        value=_format_span(burn.rate, words.format_rate),
        note=f"too high from {float(burn.alert.rate):g} on",
        tone=burn.tone,
    )


def _format_span(span: Span | None, form: Callable[[float], str]) -> str:
    if span is None:
        return words.NOT_KNOWN
    least, most = (form(float(one)) for one in span)
    return least if least == most else f"{least} to {most}"


def _find_worst(gauges: tuple[Gauge, ...]) -> Tone:
    order: tuple[Tone, ...] = ("bad", "warn", "unknown", "good")
    return min((gauge.tone for gauge in gauges), key=order.index)


def _be_honest(level: Level, tone: Tone) -> Tone:
    """Return the tone, or `unknown` instead of `good` if much of the window is unknown."""
    is_mostly_known = level.budget.known_us >= MOSTLY_KNOWN * level.budget.total_us
    return tone if tone != "good" or is_mostly_known else "unknown"


def _describe(report: Report, level: Level) -> str:
    said = []
    if level.began_us > level.as_of_us - BUDGET_US:
        length = words.duration(seconds(level.as_of_us - level.began_us))
        said.append(f"The history has only {length} of the 28 days.")
    if level.budget.unknown_us:
        part = level.budget.unknown_us / level.budget.total_us
        said.append(f"Unknown is {words.share(part)} of the partition time, which may have been up or down.")
    if report.objective is not None and (outlook := describe_outlook(level, report.objective.allowance)):
        said.append(f"{outlook[:1].upper()}{outlook[1:]}.")
    return " ".join(said)


def describe_outlook(level: Level, allowance: Fraction) -> str:
    """Return the outlook in words; "" if it was not measured. Two of them if unknown time makes a difference."""
    up, down = (foresee(level, allowance, is_unknown_down=is_down) for is_down in (False, True))
    if up is None or down is None:
        return ""
    said, at_worst = _tell(up), _tell(down)
    return said if said == at_worst else f"{said}; at worst, if all unknown time was down, {at_worst}"


def _tell(outlook: Outlook) -> str:
    if outlook.used_up_us is not None:
        earlier = " or earlier" if outlook.is_used_up_earlier else ""
        return f"the budget is used up since {words.format_minute(outlook.used_up_us)}{earlier}"
    if outlook.runs_out_us is None:
        return LASTS
    return f"the budget runs out on {words.format_minute(outlook.runs_out_us)} at the rate of the last 3 days"


def draw_budgets(report: Report) -> tuple[tuple[str, Markup], ...]:
    """Return the lines of the budget with their titles: of all clusters, and of those that are drawn."""
    if report.objective is None or report.level is None:
        return ()
    drawn = {cluster.strip.cluster for cluster in report.clusters}
    several = [level for level in report.levels if level.cluster in drawn] if report.has_many_clusters else []
    shown = [
        ("All clusters" if several else "", report.level),
        *((report.names.say(level.cluster), level) for level in several),
    ]
    return tuple(
        (title, budget_line.budget_line(level.pieces, report.objective.allowance, name=title or "the cluster"))
        for title, level in shown
        if level.pieces is not None
    )


def list_levels(report: Report, limits: Limits) -> Listed:
    """Return the table of clusters. Those that have spent most of their budget come first."""
    columns = _CLUSTER if report.objective is None else (*_CLUSTER, *_BUDGET)
    rows = sorted((_make_row(report, level) for level in report.levels), key=_order)
    return Listed(
        name="levels",
        table=TABLE,
        columns=columns,
        rows=tuple(rows[: limits.listed_clusters]),
        total=len(rows),
    )


def _order(row: Mapping[str, Value]) -> tuple[float, str]:
    most = row["at_most"]
    return (most if isinstance(most, float) else 0.0, str(row["cluster_id"]))


def _make_row(report: Report, level: Level) -> Mapping[str, Value]:
    least, most = level.budget.availability or (None, None)
    row: dict[str, Value] = {"cluster_id": level.cluster, "at_least": least, "at_most": most}
    if report.objective is None:
        return row
    allowance = report.objective.allowance
    spent = level.budget.compute_spent(allowance)
    row |= {"spent": spent and float(spent[0]), "most_spent": spent and float(spent[1])}
    for burn in rate_burns(level, allowance):
        row[f"burn_{burn.alert.window_us}"] = burn.rate and float(burn.rate[0])
    return {**row, "outlook": describe_outlook(level, allowance)}
