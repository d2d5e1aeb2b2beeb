"""Facts of a page, as Spark would have selected them: a small cluster with a bad minute, or arbitrarily many rows."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from kontroller.history.reports.attention import sort_by_need
from kontroller.history.reports.facts import (
    Bar,
    Before,
    ClusterFacts,
    Episode,
    Heat,
    HeatRow,
    Lane,
    Listed,
    Mark,
    Report,
    Step,
    Strip,
    Unknown,
    Uptime,
    Value,
)
from kontroller.history.reports.limits import Limits
from kontroller.history.reports.objective import Objective
from kontroller.history.reports.period import DAY, HOUR, MINUTE, SECOND, Period, grid_of
from kontroller.history.reports.selection.listings import LISTINGS
from kontroller.history.reports.stories import Ending, Loss, Outage, Story

BEGAN = datetime(2026, 11, 20, tzinfo=UTC)
HOSTILE = "\"><script src='http://evil.example/x.js'></script><img src=x onerror=alert(1)>'`${7*7}{{7*7}}\u202e\x00"


def period_of(days: int) -> Period:
    return Period(began=BEGAN, ended=BEGAN + timedelta(days=days))


def empty_report(days: int = 1) -> Report:
    """Return a report in which nothing is known."""
    period = period_of(days)
    columns = {listing.name: listing for listing in LISTINGS}
    return Report(
        period=period,
        grid=grid_of(period.began_us, period.ended_us, most=96),
        day_grid=grid_of(period.began_us, period.ended_us, most=96, least_us=DAY),
        clusters=(),
        clusters_total=0,
        silent_clusters=0,
        uptime=Uptime(),
        partitions=0,
        topics_total=0,
        unknown_us=0,
        unknowns=(),
        unknowns_total=0,
        strips=(),
        leaders=(),
        out_of_sync=(),
        flaps=(),
        exposure={},
        failover_bins={},
        tallies={},
        controllers=(),
        episodes=(),
        episodes_total=0,
        listings={
            name: Listed(name=name, table=one.table.name, columns=one.columns, rows=(), total=0)
            for name, one in columns.items()
        },
        missing=(),
        quiet_us=10 * MINUTE,
    )


def full_report(*, name: str = "orders", days: int = 1, topics: int = 1, brokers: int = 3, rows: int = 1) -> Report:
    """Return a report with rows in each section, in which every text is `name`."""
    empty = empty_report(days)
    began = empty.period.began_us
    lost = Uptime(known_us=DAY - MINUTE, unknown_us=MINUTE, leaderless_us=41 * SECOND, under_us=HOUR)
    calm = Uptime(known_us=empty.grid.width_us)
    cells = (lost, *([calm] * (empty.grid.count - 1)))
    hole = Unknown(cluster=name, began_us=began + HOUR, ended_us=began + HOUR + MINUTE, reason=name)
    cluster = ClusterFacts(
        name=name,
        uptime=lost,
        days={date(2026, 11, 20) + timedelta(days=day): lost for day in range(days)},
        strip=Strip(cluster=name, label=name, cells=cells),
    )
    values = (None, *(float(index % 7) for index in range(1, empty.grid.count)))
    day_values = (None, *(float(index % 7) for index in range(1, empty.day_grid.count)))
    heat_rows = tuple(HeatRow(label=f"broker {broker}", values=values) for broker in range(brokers))
    day_rows = tuple(HeatRow(label=f"broker {broker}", values=day_values) for broker in range(brokers))
    return replace(
        empty,
        clusters=(cluster,),
        clusters_total=1,
        uptime=lost,
        partitions=topics,
        topics_total=topics,
        unknown_us=MINUTE,
        unknowns=(hole,) * rows,
        unknowns_total=100_000,
        strips=tuple(Strip(cluster=name, label=name, cells=cells) for _ in range(min(topics, 20))),
        leaders=(Heat(cluster=name, rows=heat_rows, total=brokers),),
        out_of_sync=(Heat(cluster=name, rows=heat_rows, total=brokers),),
        flaps=(Heat(cluster=name, rows=day_rows, total=brokers),),
        exposure={date(2026, 11, 20) + timedelta(days=day): (HOUR, MINUTE) for day in range(days)},
        failover_bins={-4: 3, 0: 1},
        tallies={"problem:leaderless": 1, "outcome:stalled": 1, "flaps": 4, f"outcome:{name}": 2},
        controllers=(Lane(label=name, bars=(bar(began, began + HOUR, name),)),),
        episodes=(episode(name, began, brokers),),
        episodes_total=2,
        listings={key: fill_listed(listed, name, rows, began) for key, listed in empty.listings.items()}
        | {"clusters": one_cluster(empty.listings["clusters"], name, empty.period)},
        before=make_before(empty.period),
        objective=Objective(percent=99.9),
    )


def one_cluster(listed: Listed, name: str, period: Period) -> Listed:
    row = cluster_row(name, period, availability=0.99987, writable=0.99987)
    return replace(listed, rows=(row,), total=1)


def cluster_row(name: str, period: Period, **other: Value) -> dict[str, Value]:
    """Return the row of a cluster that needs no look, except for `other`."""
    row: dict[str, Value] = {
        "cluster_id": name,
        "topics": 4,
        "availability": 1.0,
        "availability_with_detection": 1.0,
        "writable": 1.0,
        "leaderless_seconds": 0.0,
        "under_seconds": 0.0,
        "unknown_share": 0.0,
        "known_until": period.ended_us - 1,
        "unclean": 0,
        "violations": 0,
        "findings": 0,
    }
    row |= other
    known, unknown = row["availability"], row["unknown_share"]
    bounds: dict[str, Value] = {"at_least": None, "at_most": None}
    if isinstance(known, float) and isinstance(unknown, float):
        bounds = {"at_least": known * (1 - unknown), "at_most": 1 - (1 - known) * (1 - unknown)}
    return bounds | row


def fleet_report(clusters: int, *, days: int = 30, limits: Limits | None = None) -> Report:
    """Return a report as full as that of so many clusters can be. Every fifth has rows, and each eleventh is silent."""
    limits = limits or Limits()
    longest = "n" * 60
    one = full_report(name=longest, days=days, topics=100_000, brokers=limits.brokers, rows=limits.table_rows)
    names = [f"cluster-{number:04}-{longest}" for number in range(clusters)]
    drawn = tuple(
        replace(one.clusters[0], name=name, strip=replace(one.clusters[0].strip, cluster=name, label=name))
        for name in names[: limits.clusters]
    )
    share = max(1, limits.brokers // len(drawn))
    heats = {
        kind: tuple(replace(heat, cluster=name, rows=heat.rows[:share]) for name in names[: len(drawn)] for heat in its)
        for kind, its in (("leaders", one.leaders), ("out_of_sync", one.out_of_sync), ("flaps", one.flaps))
    }
    listed = [make_fleet_values(number, name, one.period) for number, name in enumerate(names)]
    shown = replace(one.listings["clusters"], rows=tuple(listed[: limits.listed_clusters]), total=clusters)
    listings = {**one.listings, "clusters": sort_by_need(shown, one.objective, one.period)}
    many = replace(
        one, clusters=drawn, clusters_total=clusters, listings=listings, episodes=one.episodes * limits.episodes
    )
    return replace(many, leaders=heats["leaders"], out_of_sync=heats["out_of_sync"], flaps=heats["flaps"])


def make_fleet_values(number: int, name: str, period: Period) -> dict[str, Value]:
    if number % 11 == 10 and number % 5:
        return cluster_row(name, period, known_until=period.began_us + HOUR, unknown_share=0.9)
    if number % 5:
        return cluster_row(name, period)
    lost = cluster_row(name, period, availability=1 - number / 10**5, leaderless_seconds=float(number + 1))
    return lost | {"unclean": int(number % 25 == 0), "violations": int(number % 50 == 0)}


def make_before(period: Period) -> Before:
    earlier = period.make_previous()
    assert earlier is not None
    counts = {
        "incidents": 7,
        "failovers": 2,
        "unclean": 0,
        "reassignments": 0,
        "violations": 0,
        "flaps": 3,
        "findings": 1,
    }
    lost = Uptime(known_us=HOUR, leaderless_us=MINUTE)
    return Before(period=earlier, uptime=lost, exposed_us=2 * MINUTE, known_clock_us=HOUR, counts=counts)


def bar(began_us: int, ended_us: int, name: str) -> Bar:
    return Bar(began_us=began_us, ended_us=ended_us, state="controller", label=name, tip=name, term=(name, 3))


def episode(name: str, began: int, brokers: int) -> Episode:
    lanes = tuple(Lane(label=f"broker {broker}", bars=(bar(began, began + HOUR, ""),)) for broker in range(brokers))
    return Episode(
        cluster=name,
        began_us=began + MINUTE,
        ended_us=began + 2 * MINUTE,
        shown_until_us=began + 2 * MINUTE,
        incidents=5,
        partitions=5,
        uptime=Uptime(leaderless_us=41 * SECOND),
        unclean=1,
        brokers=lanes,
        brokers_total=brokers,
        controllers=(bar(began, began + HOUR, name),),
        unknowns=(Unknown(cluster=name, began_us=began, ended_us=began + MINUTE, reason=name),),
        leaderless=(Step(at_us=began + MINUTE, peak=5, value=5), Step(at_us=began + 2 * MINUTE, peak=5, value=0)),
        under=(),
        marks=(
            Mark(
                at_us=began + MINUTE,
                cause=name,
                partitions=5,
                places=name,
                leaderless=5,
                unclean=1,
                inferred=True,
                asked_by=name,
            ),
        ),
        marks_total=1,
        story=story(name, began),
    )


def story(name: str, began: int) -> Story:
    lost = outage(cause="broker_failed", where=name, partitions=4, led_by=(3,), began_us=began + MINUTE)
    return Story(
        losses=(Loss(broker=3, at_us=began + MINUTE),),
        losses_total=1,
        outages=(lost, outage(cause=name, where=name, ended_by=name, asked_by=name, began_us=began + 2 * MINUTE)),
        unclean=1,
        unclean_where=name,
        is_inferred=True,
    )


def outage(
    *,
    cause: str,
    began_us: int,
    where: str = "orders-3",
    problem: str = "leaderless",
    partitions: int = 1,
    longest_us: int = 192 * SECOND,
    ending: Ending = "change",
    ended_by: str = "broker_started",
    led_by: tuple[int, ...] = (),
    is_unclean: bool = False,
    asked_by: str = "",
) -> Outage:
    return Outage(
        problem=problem,
        cause=cause,
        began_us=began_us,
        ended_us=began_us + longest_us,
        incidents=partitions,
        partitions=partitions,
        where=where,
        longest_us=longest_us,
        ending=ending,
        ended_by=ended_by,
        led_by=led_by,
        is_unclean=is_unclean,
        asked_by=asked_by,
    )


def fill_listed(listed: Listed, name: str, rows: int, began: int) -> Listed:
    """`rows` equal rows, of a hundred thousand that there are."""
    kinds: Mapping[str, Value] = {
        "text": name,
        "id": 3,
        "count": 4,
        "seconds": 0.25,
        "time": began + HOUR,
        "ratio": 0.99987,
        "share": 0.5,
        "brokers": (1, 2),
        "flag": True,
        "lines": (name, name),
    }
    row = {column.field: kinds[column.kind] for column in listed.columns}
    return replace(listed, rows=(row,) * rows, total=100_000)
