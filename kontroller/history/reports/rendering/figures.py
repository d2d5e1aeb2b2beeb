"""The figures of the period, one per row, beside those of the previous period."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from kontroller.history.reports import words
from kontroller.history.reports.facts import Before, Bounds, Report, Uptime, seconds
from kontroller.history.reports.rendering.headline import honest
from kontroller.history.reports.tones import SIGNS, Tone, tone_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure. `section` is the part of the page that explains it. `before` is "" if it is not compared."""

    section: str
    label: str
    now: str
    before: str
    note: str
    tone: Tone

    @property
    def sign(self) -> str:
        return SIGNS[self.tone]


def figures(report: Report) -> tuple[Figure, ...]:
    made = (
        _available(report),
        _writable(report),
        _unknown(report),
        _incidents(report),
        _failovers(report),
        _unclean(report),
        _exposure(report),
        _flaps(report),
        _reassignments(report),
        _violations(report),
        _findings(report),
    )
    return tuple(replace(figure, tone=honest(report, figure.tone)) for figure in made)


def _find_known_before(report: Report) -> Before | None:
    return report.before if report.before is not None and report.before.uptime.known_us > 0 else None


def _count_before(report: Report, name: str) -> str:
    before = _find_known_before(report)
    count = None if before is None else before.counts.get(name)
    return words.NOT_KNOWN if count is None else f"{count:,}"


def _available(report: Report) -> Figure:
    return _share_of_time(
        report,
        "Available",
        report.uptime.availability,
        lambda uptime: uptime.bounds,
        report.uptime.leaderless_us,
        "without a leader",
    )


def _writable(report: Report) -> Figure:
    return _share_of_time(
        report,
        "Writable",
        report.uptime.write_availability,
        lambda uptime: uptime.write_bounds,
        report.uptime.under_us,
        "under min ISR",
        0.99,
    )


def _share_of_time(
    report: Report,
    label: str,
    ratio: float | None,
    bounds_of: Callable[[Uptime], Bounds | None],
    lost_us: int,
    lost: str,
    warned_from: float = 0.999,
) -> Figure:
    before = _find_known_before(report)
    return Figure(
        section="availability",
        label=label,
        now=words.format_bounds(bounds_of(report.uptime)),
        before=words.format_bounds(None if before is None else bounds_of(before.uptime)),
        note="" if ratio is None else f"{words.duration(seconds(lost_us))} {lost}",
        tone=tone_of(ratio, warned_from=warned_from),
    )


def _unknown(report: Report) -> Figure:
    before = _find_known_before(report)
    earlier = "all" if before is None else _hole(max(0, report.clock_us - before.known_clock_us))
    whole = report.unknown_us + report.known_clock_us
    if not whole or not report.known_clock_us:
        now, note = "all", "no history"
    else:
        now = _hole(report.unknown_us)
        note = (
            f"{words.share(report.unknown_us / whole)} of the period" if report.unknown_us else "the history has no gap"
        )
        note += (
            ", summed over clusters" if report.clusters_total + report.silent_clusters > 1 and report.unknown_us else ""
        )
    tone: Tone = "good" if now == "nothing" else "unknown"
    return Figure(section="unknown", label="Unknown", now=now, before=earlier, note=note, tone=tone)


def _hole(unknown_us: int) -> str:
    return words.duration(seconds(unknown_us)) if unknown_us else "nothing"


def _incidents(report: Report) -> Figure:
    leaderless, under = (report.tallies.get(f"problem:{name}", 0) for name in ("leaderless", "under_min_isr"))
    note = f"{leaderless:,} without a leader, {under:,} under min ISR" if leaderless + under else ""
    note += f"; in {words.format_count(report.episodes_total, 'episode')}" if report.episodes_total else ""
    tone: Tone = "bad" if leaderless else "warn" if under else "good" if report.is_known else "unknown"
    now = _format_count(report, leaderless + under)
    before = _count_before(report, "incidents")
    return Figure(section="incidents", label="Incidents", now=now, before=before, note=note, tone=tone)


def _format_count(report: Report, count: int) -> str:
    return f"{count:,}" if count else "none" if report.is_known else words.NOT_KNOWN


def _failovers(report: Report) -> Figure:
    listed = report.listings["failovers"]
    slowest = max((row["max_seconds"] for row in listed.rows if isinstance(row["max_seconds"], float)), default=None)
    left = sum(row["missing"] for row in listed.rows if isinstance(row["missing"], int))
    cut = "at least " if listed.total > len(listed.rows) else ""
    note = "" if slowest is None else f"slowest {words.duration(slowest)}"
    note += f"; {cut}{words.format_count(left, 'partition')} found no leader" if left else ""
    tone: Tone = "bad" if left else "warn" if listed.total else "good" if report.is_known else "unknown"
    now, before = _format_count(report, listed.total), _count_before(report, "failovers")
    return Figure(section="failovers", label="Failovers", now=now, before=before, note=note, tone=tone)


def _count_unwanted(report: Report, name: str, section: str, label: str, bad: str) -> Figure:
    """Return the figure of a kind of event that should never happen."""
    total = report.listings[name].total
    tone: Tone = "bad" if total else "good" if report.is_known else "unknown"
    now, before = _format_count(report, total), _count_before(report, name)
    return Figure(section=section, label=label, now=now, before=before, note=bad if total else "", tone=tone)


def _unclean(report: Report) -> Figure:
    return _count_unwanted(report, "unclean", "unclean", "Unclean elections", "data may be lost")


def _violations(report: Report) -> Figure:
    if "violations" in report.missing:
        note = "there is no audit"
        return Figure(section="audit", label="Violations", now="not audited", before="", note=note, tone="unknown")
    inferred = report.tallies.get("inferred:true", 0)
    note = "of the protocol's invariants" + (f"; {inferred:,} only inferred" if inferred else "")
    return _count_unwanted(report, "violations", "audit", "Violations", note)


def _exposure(report: Report) -> Figure:
    replica, before = sum(amounts[0] for amounts in report.exposure.values()), _find_known_before(report)
    earlier = words.NOT_KNOWN if before is None else words.duration(seconds(before.exposed_us))
    now = words.duration(seconds(replica)) if report.is_known or replica else words.NOT_KNOWN
    tone: Tone = "warn" if replica else "good" if report.is_known else "unknown"
    label, note = "One replica in sync", "of partition time" if replica else ""
    return Figure(section="exposure", label=label, now=now, before=earlier, note=note, tone=tone)


def _flaps(report: Report) -> Figure:
    flaps = report.tallies.get("flaps", 0)
    note = (
        f"of {words.format_count(report.listings['flaps'].total, 'replica')}: left the ISR and came back"
        if flaps
        else ""
    )
    tone: Tone = "warn" if flaps else "good" if report.is_known else "unknown"
    now, before = _format_count(report, flaps), _count_before(report, "flaps")
    return Figure(section="flapping", label="ISR flaps", now=now, before=before, note=note, tone=tone)


def _reassignments(report: Report) -> Figure:
    outcomes = {name.removeprefix("outcome:"): n for name, n in report.tallies.items() if name.startswith("outcome:")}
    is_stuck = outcomes.get("stalled") or outcomes.get("unknown")
    tone: Tone = "warn" if is_stuck else "good" if report.is_known else "unknown"
    note = words.join_words([f"{n:,} {outcome}" for outcome, n in sorted(outcomes.items())])
    now = _format_count(report, report.listings["reassignments"].total)
    before = _count_before(report, "reassignments")
    return Figure(section="reassignments", label="Reassignments", now=now, before=before, note=note, tone=tone)


def _findings(report: Report) -> Figure:
    if "findings" in report.missing:
        return Figure(section="findings", label="Input findings", now="not checked", before="", note="", tone="unknown")
    total, untimed = report.listings["findings"].total, report.tallies.get("findings:untimed", 0)
    kinds = words.format_count(len({row["problem"] for row in report.listings["problems"].rows}), "kind")
    note = f"of {kinds}" if total else "the history itself is sound"
    note += f"; {untimed:,} without a known time, which the previous period never has" if untimed else ""
    tone: Tone = "warn" if total else "good"
    now, before = f"{total:,}" if total else "none", _count_before(report, "findings")
    return Figure(section="findings", label="Input findings", now=now, before=before, note=note, tone=tone)
