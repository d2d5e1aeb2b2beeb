"""The top of the page: the availability of the clusters, the data at risk, and the worst incident.

Unknown time is never called good.
"""

from dataclasses import dataclass

from kontroller.history.reports import words
from kontroller.history.reports.facts import Report, Uptime, seconds
from kontroller.history.reports.tones import MOSTLY_KNOWN, SIGNS, Tone, tone_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A short answer to a question, with the figures behind it. `tone` selects its colour and sign."""

    section: str
    label: str
    value: str
    notes: tuple[str, ...]
    tone: Tone

    @property
    def sign(self) -> str:
        return SIGNS[self.tone]


def title_of(report: Report) -> str:
    """Return the names or the number of the clusters."""
    names = [report.names.say(cluster.name) for cluster in report.clusters]
    if not names:
        return "No cluster"
    if len(names) < report.clusters_total:
        return f"{report.clusters_total:,} clusters"
    return words.join_words(names) if len(names) <= 3 else f"{len(names)} clusters"


def lead_of(report: Report) -> str:
    """Return a summary of the page in one or two sentences."""
    if not report.is_known:
        return (
            "Nothing is known of this period, because it has no snapshot of a controller's state. "
            "It counts as neither up nor down. Check that the journals of this period were ingested."
        )
    uptime, whole = report.uptime, report.partitions
    of = f"{words.format_count(report.topics_total, 'topic')} with {words.format_count(whole, 'partition')}"
    if uptime.leaderless_us == 0:
        said = f"No partition of {of} was without a leader in the known part of this period."
    else:
        lost = words.duration(seconds(uptime.leaderless_us))
        said = f"Partitions were without a leader for {lost} in total, of {of}."
    if not report.unknown_us:
        return said
    hole = words.duration(seconds(report.unknown_us))
    return f"{said} {hole} of the period are unknown: neither up nor down, unless a partition provably had no leader."


def panels(report: Report) -> tuple[Panel, ...]:
    return _available(report), _risk(report)


def honest(report: Report, tone: Tone) -> Tone:
    """Return the tone, or `unknown` instead of `good` if much of the period is unknown."""
    return "unknown" if tone == "good" and not is_mostly_known(report) else tone


def is_mostly_known(report: Report) -> bool:
    return report.is_known and report.known_clock_us >= MOSTLY_KNOWN * (report.known_clock_us + report.unknown_us)


def _available(report: Report) -> Panel:
    uptime = report.uptime
    ratio = uptime.availability
    notes = ("no history",) if ratio is None else (
        *_note_unknown(uptime),
        f"{words.nines(ratio)}: {words.duration(seconds(uptime.leaderless_us))} without a leader, summed over "
        f"{words.format_count(report.partitions, 'partition')}",
        *_note_detection(report, uptime.availability_with_detection),
        f"Writable with acks=all {words.format_bounds(uptime.write_bounds)}: "
        f"{words.duration(seconds(uptime.under_us))} under min ISR",
        *_note_detection(report, uptime.write_availability_with_detection),
    )  # fmt: skip
    return Panel(
        section="availability",
        label="Available",
        value=words.format_bounds(uptime.bounds),
        notes=notes,
        tone=honest(report, tone_of(ratio)),
    )


def _note_unknown(uptime: Uptime) -> tuple[str, ...]:
    """Return a note with the proven availability, or nothing if no time is unknown."""
    if not uptime.unknown_us + uptime.silent_us:
        return ()
    return (f"{words.percent(uptime.availability)} of the known time; unknown time may have been down or up",)


def _note_detection(report: Report, ratio: float | None) -> tuple[str, ...]:
    """Return a note with the availability that clients saw at worst, or nothing if no broker crashed."""
    if not report.uptime.detection_us or ratio is None:
        return ()
    timeout = words.duration(report.broker_session_timeout_ms / 1000)
    return (f"With detection: at least {words.percent(ratio)}, with at most {timeout} until each crash was noticed",)


def _risk(report: Report) -> Panel:
    unclean = report.listings["unclean"].total
    replica = sum(amounts[0] for amounts in report.exposure.values())
    rack = sum(amounts[1] for amounts in report.exposure.values())
    if not report.is_known and not unclean:
        notes: tuple[str, ...] = ("no history",)
        return Panel(section="unclean", label="Risk of data loss", value=words.NOT_KNOWN, notes=notes, tone="unknown")
    notes = (
        "An elected leader was not in sync: data may be lost" if unclean else "Every elected leader was in sync",
        f"{words.duration(seconds(replica))} of partition time with one replica in sync" if replica
        else "Two or more replicas were always in sync",
        *([f"{words.duration(seconds(rack))} with all in-sync replicas in one rack"] if rack else []),
    )  # fmt: skip
    value = (
        words.format_count(unclean, "unclean election")
        if unclean
        else "one failure from loss"
        if replica
        else "none seen"
    )
    tone: Tone = "bad" if unclean else "warn" if replica or rack else "good"
    section = "unclean" if unclean else "exposure"
    return Panel(section=section, label="Risk of data loss", value=value, notes=notes, tone=honest(report, tone))
