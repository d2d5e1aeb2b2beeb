"""The state of a cluster at a moment of the past, from its journals. Needs no Spark.

Records are applied in their order. Their times come from clocks that are believed (`continuity.clock_runs`), so a wrong
stamp ends nothing early. A state is known until the next sign of life of a controller, unless that comes too late, is
of another term, or records before it are missing: then changes between the two may not have been recorded.
"""

from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

from controller_core.journal.changes import Kind
from controller_core.journal.fold import Image, fold
from controller_core.journal.reader import Entry, Gap, Record, find_journals, read
from controller_core.model.wording import format_utc
from kontroller.history.topic_changes import say_values
from kontroller.history.transforms.continuity.clock_runs import Run, place_runs

_BACK_US: Final = 60_000_000
_ALIVE_INTERVALS: Final = 6
_ALIVE_INTERVAL_MS: Final = 10_000
"""As in `continuity.breaks` and `continuity.neighbours`, which need Spark."""

Thing = Mapping[str, Any]
Things = dict[str, Thing]
"""The things of a cluster by names such as `partition orders-3`, each with its fields."""


class SeveralClusters(Exception):
    """The journals are of several clusters. Give the folders of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The state at a moment. Times are microseconds since 1970."""

    things: Things | None
    """None if no state is known at or before the moment."""
    from_us: int | None
    """The last sign of life at or before the moment; None if there is none."""
    until_us: int | None
    """The next sign of life; None if the journals end before."""
    is_known: bool
    """False if the controller was silent at that moment, or records are missing."""
    broken_by: str | None = None
    """The reason why changes between the two signs of life may not have been recorded; None if there is none."""

    @property
    def why_unknown(self) -> str:
        if self.from_us is None:
            begin = "" if self.until_us is None else f", they begin at {format_utc(self.until_us)}"
            return f"these journals have no earlier record{begin}"
        if self.things is None:
            return f"no snapshot, or records are missing, before {format_utc(self.from_us)}"
        if self.until_us is None:
            return f"the journals end at {format_utc(self.from_us)}"
        between = f"from {format_utc(self.from_us)} to {format_utc(self.until_us)}"
        return f"{self.broken_by or 'nothing was recorded'} {between}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A thing that differs between two states, with the fields that differ."""

    name: str
    before: Thing | None
    """None if it did not exist."""
    after: Thing | None


def read_past(at_us: int, *folders: Path, topics: Collection[str] = ()) -> Past:
    """Return the state at a moment, from the journals of one cluster at or below these folders.

    `topics`: return the things of these topics only; empty: all. Raises `OSError`, and `SeveralClusters`."""
    directories = find_journals(*folders)
    signs = _read_signs(read(*directories))
    times = signs.times
    count = bisect_right(times, at_us)
    folded = fold(_take(read(*directories), count)) if count else None
    image = None if folded is None else folded.image
    from_us, until_us = (times[count - 1] if count else None), (times[count] if count < len(times) else None)
    is_awake = from_us is not None and until_us is not None and until_us - from_us <= signs.silence_us
    return Past(
        things=None if image is None else list_things(image, topics),
        from_us=from_us,
        until_us=until_us,
        is_known=image is not None and ((is_awake and count not in signs.breaks) or from_us == at_us),
        broken_by=signs.breaks.get(count),
    )


def find_differences(before: Things, after: Things) -> Iterator[Difference]:
    """Yield the things that differ."""
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name), after.get(name)
        if old is not None and new is not None:
            changed = [key for key in {**old, **new} if old.get(key) != new.get(key)]
            old, new = ({key: each[key] for key in changed if key in each} for each in (old, new))
        if old != new:
            yield Difference(name=name, before=old, after=new)


def list_things(image: Image, topics: Collection[str] = ()) -> Things:
    """Return everything that an image has, or what it has of these topics."""
    things: Things = {}
    for topic in sorted(image.topics.keys() & set(topics) if topics else image.topics):
        things[f"topic {topic}"] = {"topic_id": image.topics[topic][0]}
        if topic in image.topic_configs:
            things[f"configuration of topic {topic}"] = image.topic_configs[topic]["config"]
    for (topic, partition), assigned in sorted(image.assignments.items(), key=itemgetter(0)):
        if not topics or topic in topics:
            led = image.leaderships.get((topic, partition), {})
            shown = {name: value for name, value in assigned.items() if value or name == "replicas"}
            things[f"partition {topic}-{partition}"] = {**led, **shown}
    if topics:
        return things
    things |= {f"broker {broker}": fields for broker, fields in sorted(image.brokers.items())}
    for of, fields in image.broker_configs.items():
        things[f"configuration of {'all brokers' if of is None else f'broker {of}'}"] = fields["config"]
    things |= {f"offline replicas of broker {broker}": fields for broker, fields in image.offline_replicas.items()}
    return things | ({} if image.features is None else {"features": image.features})


def say_thing(thing: Thing | None) -> str:
    """Return a thing in one line; `-` if it does not exist."""
    return "-" if thing is None else say_values(thing)


def _is_sign_of_life(entry: Entry) -> bool:
    return isinstance(entry, Record) and entry.line.kind != Kind.REQUEST


def _take(entries: Iterable[Entry], count: int) -> Iterator[Entry]:
    """Yield the entries up to that many signs of life."""
    for entry in entries:
        yield entry
        count -= _is_sign_of_life(entry)
        if not count:
            return


class _Signs(NamedTuple):
    """The signs of life of a journal."""

    times: list[int]
    """Their believed times, which never go back."""
    silence_us: int
    """The longest time between two of them that is no silence."""
    breaks: dict[int, str]
    """The reason why changes before a sign of life may not have been recorded, by its index."""


def _read_signs(entries: Iterable[Entry]) -> _Signs:
    stamps, clusters, interval_ms = array("q"), set[str](), 0
    breaks: dict[int, str] = {}
    epoch: int | None = None
    for entry in entries:
        if isinstance(entry, Gap):
            breaks[len(stamps)] = "records are missing"
        if not isinstance(entry, Record) or not _is_sign_of_life(entry):
            continue
        if entry.line.controller_epoch != epoch:
            breaks.setdefault(len(stamps), "between two terms nothing was recorded")
        elif entry.line.kind == Kind.RECORDER_STARTED:
            breaks.setdefault(len(stamps), "no recorder was running")
        epoch = entry.line.controller_epoch
        stamps.append(min(entry.line.event_time_us, 2**63 - 1))
        interval_ms = max(interval_ms, entry.line.alive_interval_ms or 0)
        clusters |= {entry.line.cluster_id} if entry.line.cluster_id else set()
        if len(clusters) > 1:
            raise SeveralClusters(f"the journals are of several clusters, {' and '.join(sorted(clusters))}")
    silence_us = _ALIVE_INTERVALS * (interval_ms or _ALIVE_INTERVAL_MS) * 1000
    starts = [
        index for index in range(len(stamps)) if not index or _is_step(stamps[index - 1], stamps[index], silence_us)
    ]
    bounds = list(pairwise([*starts, len(stamps)]))
    places = place_runs([Run(stamps[first], max(stamps[first], stamps[end - 1])) for first, end in bounds])
    times: list[int] = []
    for (first, end), place in zip(bounds, places, strict=True):
        for stamp in stamps[first:end]:
            times.append(max(place.clamp(stamp), times[-1] if times else 0))
    return _Signs(times, silence_us, breaks)


def _is_step(before_us: int, after_us: int, silence_us: int) -> bool:
    return after_us < before_us - _BACK_US or after_us > before_us + silence_us
