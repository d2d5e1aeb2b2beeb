"""The numbers at the top of the page, each with the section that explains it. What is not known is not called good."""

from dataclasses import dataclass, replace
from typing import Literal

from controller_pipeline.reports import words
from controller_pipeline.reports.facts import Report, seconds

Tone = Literal["good", "warn", "bad", "unknown"]
MOSTLY_KNOWN = 0.9
"""Of the period: from there on, what went well may be called good."""
SIGNS: dict[Tone, str] = {"good": "\u2713", "warn": "!", "bad": "\u2715", "unknown": "?"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """`tone` colours it and chooses its sign."""

    section: str
    label: str
    value: str
    note: str
    tone: Tone

    @property
    def sign(self) -> str:
        return SIGNS[self.tone]


def title_of(report: Report) -> str:
    """The clusters."""
    names = [cluster.name for cluster in report.clusters]
    if not names:
        return "No cluster"
    if len(names) < report.clusters_total:
        return f"{report.clusters_total:,} clusters"
    return words.joined(names) if len(names) <= 3 else f"{len(names)} clusters"


def lead_of(report: Report) -> str:
    """What the page comes to, in one or two sentences."""
    if not report.is_known:
        return (
            "Nothing is known of this period: no snapshot of a controller's state lies in it. "
            "That is neither up nor down. Check that the journals of this period were given."
        )
    uptime, whole = report.uptime, report.partitions
    of = f"{words.counted(report.topics_total, 'topic')} with {words.counted(whole, 'partition')}"
    if uptime.leaderless_us == 0:
        said = f"No partition of {of} was without a leader in what is known of this period."
    else:
        lost = words.duration(seconds(uptime.leaderless_us))
        said = f"Partitions were without a leader for {lost} in all, of {of}."
    hole = words.duration(seconds(report.unknown_us))
    return said + (f" {hole} of the period are unknown, and count as neither up nor down." if report.unknown_us else "")


def tiles(report: Report) -> tuple[Tile, ...]:
    """Where much of the period is unknown, nothing is called good for what little is known."""
    made = _tiles(report)
    if report.known_clock_us >= MOSTLY_KNOWN * (report.known_clock_us + report.unknown_us):
        return made
    return tuple(replace(tile, tone="unknown") if tile.tone == "good" else tile for tile in made)


def _tiles(report: Report) -> tuple[Tile, ...]:
    return (
        _available(report),
        _writable(report),
        _unknown(report),
        _incidents(report),
        _worst_topic(report),
        _failovers(report),
        _count(report, "unclean", "unclean", "Unclean elections", "data may have been lost", "none seen"),
        _violations(report),
        _exposure(report),
        _flaps(report),
        _reassignments(report),
        _findings(report),
    )


def _available(report: Report) -> Tile:
    ratio = report.uptime.availability
    tone: Tone = "unknown" if ratio is None else "good" if ratio >= 0.9999 else "warn" if ratio >= 0.999 else "bad"
    lost = words.duration(seconds(report.uptime.leaderless_us))
    of = words.counted(report.partitions, "partition")
    note = "no history" if ratio is None else f"{words.nines(ratio)}: {lost} without a leader, summed over {of}"
    return Tile(section="availability", label="Available", value=words.percent(ratio), note=note, tone=tone)


def _writable(report: Report) -> Tile:
    ratio = report.uptime.write_availability
    tone: Tone = "unknown" if ratio is None else "good" if ratio >= 0.9999 else "warn" if ratio >= 0.99 else "bad"
    lost = words.duration(seconds(report.uptime.under_us))
    note = "no history" if ratio is None else f"to writers with acks=all; {lost} under min ISR"
    return Tile(section="availability", label="Writable", value=words.percent(ratio), note=note, tone=tone)


def _unknown(report: Report) -> Tile:
    if not report.is_known and not report.known_clock_us:
        return Tile(section="unknown", label="Unknown", value="all of it", note="no history", tone="unknown")
    if not report.unknown_us:
        return Tile(section="unknown", label="Unknown", value="nothing", note="the history has no hole", tone="good")
    whole = report.unknown_us + report.known_clock_us
    note = f"{words.share(report.unknown_us / whole)} of the period, summed over clusters"
    note = note if report.clusters_total > 1 else f"{words.share(report.unknown_us / whole)} of the period"
    value = words.duration(seconds(report.unknown_us))
    return Tile(section="unknown", label="Unknown", value=value, note=note, tone="unknown")


def _incidents(report: Report) -> Tile:
    leaderless = report.tallies.get("problem:leaderless", 0)
    under = report.tallies.get("problem:under_min_isr", 0)
    note = f"{leaderless:,} without a leader, {under:,} under min ISR"
    note += f"; in {words.counted(report.episodes_total, 'episode')}" if report.episodes_total else ""
    tone: Tone = "bad" if leaderless else "warn" if under else "good" if report.is_known else "unknown"
    value = f"{leaderless + under:,}" if report.is_known or leaderless + under else words.NOT_KNOWN
    return Tile(section="incidents", label="Incidents", value=value, note=note, tone=tone)


def _worst_topic(report: Report) -> Tile:
    worst = next(iter(report.listings["topics"].rows), None)
    ratio = None if worst is None else worst["availability"]
    if worst is None or not isinstance(ratio, float):
        return Tile(section="topics", label="Worst topic", value=words.NOT_KNOWN, note="no history", tone="unknown")
    if ratio >= 1:
        return Tile(section="topics", label="Worst topic", value="none", note="no topic lost any time", tone="good")
    note = words.shortened(str(worst["topic"]), 60)
    return Tile(
        section="topics",
        label="Worst topic",
        value=words.percent(ratio),
        note=note,
        tone="warn" if ratio >= 0.999 else "bad",
    )


def _failovers(report: Report) -> Tile:
    listed = report.listings["failovers"]
    if not listed.total:
        return _count(report, "failovers", "failovers", "Failovers", "", "no broker was lost")
    slowest = max((row["max_seconds"] for row in listed.rows if isinstance(row["max_seconds"], float)), default=None)
    left = sum(row["missing"] for row in listed.rows if isinstance(row["missing"], int))
    cut = "at least " if listed.total > len(listed.rows) else ""
    note = f"slowest {words.duration(slowest)}"
    note += f"; {cut}{words.counted(left, 'partition')} found no leader" if left else ""
    return Tile(
        section="failovers", label="Failovers", value=f"{listed.total:,}", note=note, tone="bad" if left else "warn"
    )


def _count(report: Report, section: str, listing: str, label: str, bad: str, none: str) -> Tile:
    total = report.listings[listing].total
    if total:
        return Tile(section=section, label=label, value=f"{total:,}", note=bad, tone="bad")
    if not report.is_known:
        return Tile(section=section, label=label, value=words.NOT_KNOWN, note="no history", tone="unknown")
    return Tile(section=section, label=label, value="none", note=none, tone="good")


def _violations(report: Report) -> Tile:
    if "violations" in report.missing:
        return Tile(section="audit", label="Violations", value="not audited", note="no audit was given", tone="unknown")
    inferred = report.tallies.get("inferred:true", 0)
    note = "of the protocol's invariants" + (f"; {inferred:,} only inferred" if inferred else "")
    return _count(report, "audit", "violations", "Violations", note, "every invariant held in what is known")


def _exposure(report: Report) -> Tile:
    replica = sum(amounts[0] for amounts in report.exposure.values())
    if replica:
        value = words.duration(seconds(replica))
        return Tile(
            section="exposure",
            label="One failure from loss",
            value=value,
            note="partition time with one replica in sync",
            tone="warn",
        )
    if not report.is_known:
        return Tile(
            section="exposure", label="One failure from loss", value=words.NOT_KNOWN, note="no history", tone="unknown"
        )
    return Tile(
        section="exposure",
        label="One failure from loss",
        value="none",
        note="two replicas in sync, always",
        tone="good",
    )


def _flaps(report: Report) -> Tile:
    flaps = report.tallies.get("flaps", 0)
    if not flaps:
        return _count(
            report, "flapping", "flaps", "ISR flaps", "replicas left the ISR", "no replica left and came back"
        )
    note = f"of {words.counted(report.listings['flaps'].total, 'replica')}: left the ISR and came back"
    return Tile(section="flapping", label="ISR flaps", value=f"{flaps:,}", note=note, tone="warn")


def _reassignments(report: Report) -> Tile:
    total = report.listings["reassignments"].total
    outcomes = {name.removeprefix("outcome:"): n for name, n in report.tallies.items() if name.startswith("outcome:")}
    if not total:
        value = "none" if report.is_known else words.NOT_KNOWN
        tone: Tone = "good" if report.is_known else "unknown"
        return Tile(section="reassignments", label="Reassignments", value=value, note="", tone=tone)
    tone = "warn" if outcomes.get("stalled") or outcomes.get("unknown") else "good"
    note = words.joined([f"{n:,} {outcome}" for outcome, n in sorted(outcomes.items())])
    return Tile(section="reassignments", label="Reassignments", value=f"{total:,}", note=note, tone=tone)


def _findings(report: Report) -> Tile:
    if "findings" in report.missing:
        return Tile(section="findings", label="Input findings", value="not checked", note="", tone="unknown")
    total = report.listings["findings"].total
    if total:
        kinds = words.counted(len({row["problem"] for row in report.listings["problems"].rows}), "kind")
        return Tile(section="findings", label="Input findings", value=f"{total:,}", note=f"of {kinds}", tone="warn")
    return Tile(
        section="findings", label="Input findings", value="none", note="the history itself is sound", tone="good"
    )
