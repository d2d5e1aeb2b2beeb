"""The tables of `make bench-designs`: counts unchanged, times and throughputs as ratios of one run.

The duration of a scenario is only shown for a run that had the machine to itself.
"""

import statistics
from collections.abc import Callable, Sequence
from typing import Final

from bench.designs.report.result import TITLES, Counted, Result, Throughput
from bench.report.document import NOT_MEASURED, table_of
from bench.report.tables import facts_of
from controller_core.model import wording

_COUNTS: Final[dict[str, Callable[[Counted], float]]] = {
    "transactions in ZooKeeper": lambda row: row.transactions,
    "of these refused: another was faster": lambda row: row.refused,
    "znodes written": lambda row: row.znodes_written,
    "requests to ZooKeeper": lambda row: row.requests,
    "znodes read": lambda row: row.znodes_read,
    "notifications of ZooKeeper": lambda row: row.notifications,
    "requests between servers, without Fetch": lambda row: row.messages_sent,
}
_PROCESSOR: Final[dict[str, Callable[[Counted], float]]] = {
    "processor time of all servers": lambda row: row.processor_s
}
_TIMES: Final[dict[str, Callable[[Counted], float]]] = {
    "until the last leader stands in ZooKeeper": lambda row: row.led_s,
    "until the last ISR does": lambda row: row.settled_s,
    "until all brokers tell clients": lambda row: row.known_s,
}


def make_counts_table(result: Result) -> str:
    """Return the counts of each scenario, at the largest size that both designs finished."""
    rows = []
    for scenario, title in TITLES.items():
        if (both := result.largest_of_both(scenario)) is None:
            continue
        head = f"{title}, {both[0].partitions:,} partitions"
        for what, count in _COUNTS.items():
            rows.append([head, what, *(f"{count(row):,}" for row in both), _ratio(*map(count, both))])
        for what, seconds in (_PROCESSOR | (_TIMES if result.is_alone else {})).items():
            if min(map(seconds, both)) > 0:  # nobody is elected when a broker returns
                rows.append([head, what, "", "", _ratio(*map(seconds, both))])
    return table_of(["scenario", "counted", "v2", "v3", "v2 / v3"], rows)


def seeds(result: Result) -> str:
    """Return the seeds' claims about the cost of a new leader, and the counts after a broker's death."""
    both = result.largest_of_both("death")
    if both is None or not all(row.leaders for row in both):
        return NOT_MEASURED

    def each(count: Callable[[Counted], float]) -> list[str]:
        return [f"{count(row) / row.leaders:.2f}" for row in both]

    told = both[0].written.get("create request", 0)
    rows = [
        ["partitions that need a new leader", "10,000", *(f"{row.leaders:,}" for row in both)],
        [
            "znodes of leader, epoch and ISR written for each",
            "v2: leader, ISR and CUR; v3: 1, and 1 where the ISR alone changes",
            *each(
                lambda row: row.wrote("leader", "epoch", "ISR", "CUR", "state") - row.written.get("delete leader", 0)
            ),
        ],
        [
            "transactions for each",
            '"1 ZK write per affected partition", or multi()',
            *each(lambda row: row.transactions),
        ],
        ["znodes read for each", "v2: the ISR and AR; v3: the ISR", *each(lambda row: row.znodes_read)],
        ["requests to ZooKeeper for each", "", *each(lambda row: row.requests)],
        [
            "znodes written to tell a follower",
            "v2: 2 writes, 1 watch, 1 read; v3: none",
            f"{both[0].wrote('request') / told:.2f}" if told else "",
            "0",
        ],
        [
            "requests between servers, without Fetch",
            "v3: 1 to each broker",
            *(f"{row.messages_sent:,}" for row in both),
        ],
        ["watches held in the end", 'v3: "Fewer ZK watchers"', *(f"{row.watches:,}" for row in both)],
    ]
    return table_of(["after a broker's death", "the seeds", "v2, counted", "v3, counted"], rows)


def growth(result: Result) -> str:
    """Return the counts for each partition, over the number of partitions."""
    rows = []
    for scenario, title in TITLES.items():
        for what in ("requests to ZooKeeper", "znodes read", "znodes written"):
            for design in ("v2", "v3"):
                found = [result.find_counts(scenario, size).get(design) for size in result.sizes]
                cells = ["" if row is None else f"{_COUNTS[what](row) / row.partitions:.2f}" for row in found]
                if any(cells):
                    rows.append([f"{title}: {what}", design, *cells])
    return table_of(["for each partition", "", *(f"of {size:,}" for size in result.sizes)], rows)


def throughput(result: Result) -> str:
    """Return the stock broker's throughput divided by the Python broker's."""
    shapes = sorted({(row.partitions, row.replicas) for row in result.throughput})
    measures = [
        (shape, what, name)
        for shape in shapes
        for what, name in (
            ("written, many under way", "written_per_s"),
            ("written, each awaited", "awaited_per_s"),
            ("read", "read_per_s"),
        )
    ]
    rows = []
    for (partitions, replicas), what, name in measures:
        of_shape = [row for row in result.throughput if (row.partitions, row.replicas) == (partitions, replicas)]
        if ratios := _ratios(of_shape, name):
            partitions_text = wording.format_count(partitions, "partition")
            title = f"{what}: {partitions_text}, {wording.format_count(replicas, 'replica')} each"
            rows.append([title, " ".join(f"{ratio:.1f}" for ratio in ratios), f"**{statistics.median(ratios):.1f}x**"])
    return table_of(["records of 1 kB a second", "stock / Python, each round", "median"], rows)


def _ratios(rows: Sequence[Throughput], name: str) -> list[float]:
    of = {(row.broker, row.run): value for row in rows if (value := getattr(row, name)) is not None}
    runs = sorted({row.run for row in rows})
    return [of["stock", run] / of["python", run] for run in runs if {("stock", run), ("python", run)} <= of.keys()]


def failures(result: Result) -> str:
    """Return the lives that did not finish."""
    rows = [[row.design, f"{row.partitions:,}", row.error] for row in result.failures]
    return table_of(["", "partitions", "what was wrong"], rows) if rows else "No life failed."


def machine(result: Result) -> str:
    """Return the machine and the settings of the measurement."""
    facts = {"began": result.began} if result.began else {}
    facts |= {**facts_of(result.machine), **facts_of(result.settings)}
    loads = [row.load_before for row in result.scenarios if row.load_before is not None]
    if loads:
        facts["load before the lives"] = f"{min(loads):.1f} to {max(loads):.1f}"
    return table_of(["what", "value"], [[name, fact] for name, fact in facts.items()])


TABLES: Final[dict[str, Callable[[Result], str]]] = {
    "seeds": seeds,
    "counted": make_counts_table,
    "growth": growth,
    "throughput": throughput,
    "failures": failures,
    "machine": machine,
}


def _ratio(v2: float, v3: float) -> str:
    if min(v2, v3) <= 0:
        return ""
    ratio = v2 / v3
    return f"**{ratio:,.0f}x**" if ratio >= 10 else f"**{ratio:.1f}x**"
