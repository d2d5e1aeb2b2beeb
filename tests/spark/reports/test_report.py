"""A bad day's tables become one page and its tables as files."""

import json
from datetime import timedelta
from html.parser import HTMLParser

import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from kontroller.history.reports.limits import Limits
from kontroller.history.reports.objective import Objective
from kontroller.history.reports.period import Period
from kontroller.history.reports.rendering.causes import SAID
from kontroller.history.reports.report import ReportSummary, write_report
from kontroller.history.reports.selection.before import figures_before
from kontroller.history.reports.selection.places import places
from tests.spark.reports.bad_day import FIRST_DAY, HOSTILE, REFUSALS, add_clients, bad_day, frames

DAY = Period(began=FIRST_DAY, ended=FIRST_DAY + timedelta(days=1))


class Reader(HTMLParser):
    """The text of each section."""

    def __init__(self) -> None:
        super().__init__()
        self.section = ""
        self.texts: dict[str, str] = {}
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        if tag == "section":
            self.section = dict(attrs)["id"] or ""

    def handle_data(self, data: str) -> None:
        self.texts[self.section] = self.texts.get(self.section, "") + data


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> ReportSummary:
    tables = frames(spark, add_clients(bad_day(hostile=True)))
    objective, output = Objective(percent=99.99), tmp_path_factory.mktemp("report")
    limits = Limits(table_rows=12, requests=100)
    return write_report(tables, output, period=DAY, limits=limits, objective=objective)


@pytest.fixture(scope="module")
def texts(written: ReportSummary) -> dict[str, str]:
    reader = Reader()
    reader.feed(written.page.read_text())
    assert reader.scripts == 1
    return reader.texts


def test_the_summary_has_what_a_command_line_says(written: ReportSummary) -> None:
    assert written.clusters == 1
    assert (written.unclean_elections, written.violations, written.findings) == (1, 1, 3)
    assert written.missing == ()
    rows = bad_day(hostile=True)["incidents"]
    lost = sum((row["ended"] - row["began"]).total_seconds() for row in rows if row["problem"] == "leaderless")
    assert written.leaderless_seconds == pytest.approx(lost)
    assert written.availability == pytest.approx(1 - lost / (42 * (86400 - 250)))


def test_each_section_says_what_happened(texts: dict[str, str]) -> None:
    assert "5 left without a leader" in texts["incidents"]
    assert "broker 3 (eu-west-1c)" in texts["incidents"]
    assert "First 12 of 15" in texts["incidents"]
    assert "broker_failed" in texts["failovers"]
    assert "orders (2), payments (2)" in texts["failovers"]  # the partitions that the broker led when it was lost
    assert "orders-3 stalled" in texts["reassignments"]
    assert "3, 9" in texts["exposure"]  # the partitions of orders that were alone
    assert "1002, epoch 18" in texts["controllers"]
    assert "4 min 10 s" in texts["unknown"]
    assert "leader_is_alive" in texts["audit"]
    assert "controller-1001/17-0.jsonl" in texts["audit"]
    assert "212 records are missing" in texts["findings"]


def test_the_worst_episode_is_told_in_a_sentence(texts: dict[str, str]) -> None:
    top = texts[""].split("The worst incident")[1]
    assert "Broker 3 was lost at 02:13:04; " in top
    assert "until broker 3 was back" in top
    assert "had no leader for 41 s, until broker 4, which was not in sync, was elected" in top
    assert "Data of orders-3 may be lost." in top


def test_an_incident_names_the_brokers_that_were_missing_and_the_timeline_shows_them_alone(
    texts: dict[str, str],
) -> None:
    """Brokers 4 and 5 left the ISRs while they were registered, before broker 3 was lost."""
    assert "while brokers 4 and 5 were out of sync but registered (slow, hung or cut off)" in texts["incidents"]
    assert "3 of 6 brokers are shown: those that were away or out of sync." in texts["incidents"]
    assert "broker 4 was registered, and partitions missed it in their ISRs" in texts["incidents"]
    assert "broker 6 (eu-west-1c)" not in texts["incidents"]


def test_the_page_names_the_clients_who_asked_for_changes(texts: dict[str, str]) -> None:
    alice = "User:alice from 10.0.0.7"
    assert f"Configurations were changed by {alice} at 02:13:45" in texts["incidents"]
    assert f"incremental_alter_configs by {alice}" in texts["incidents"]
    assert alice in texts["unclean"]
    assert alice in texts["reassignments"]
    assert "IncrementalAlterConfigs" in texts["requests"]
    assert "topic orders" in texts["requests"]
    assert "and 8 more" in texts["requests"]


def test_refused_requests_of_a_stranger_are_marked_counted_and_bounded(
    texts: dict[str, str], written: ReportSummary
) -> None:
    told = texts["requests"].split("Refused and failed requests")[1]
    assert "refused: CLUSTER_AUTHORIZATION_FAILED" in told
    assert "First 12 of 101" in told
    path = next(path for path in written.tables if path.name == "requests.parquet")
    rows = pyarrow.parquet.read_table(path).to_pylist()
    assert sum(row["count"] for row in rows if row["outcome"] == "refused") == REFUSALS
    assert [row["count"] for row in rows if row["principal"] is None] == [REFUSALS - 100]
    assert [row["principal"] for row in rows if row["outcome"] == "done"] == ["User:alice"]


def test_nothing_is_made_up_of_a_period_before_the_history(texts: dict[str, str]) -> None:
    figures = texts[""].split("This period and the previous one")[1]
    assert "not known" in figures.split("Writable")[0]


def test_what_a_topic_lost_is_spent_of_its_own_budget(texts: dict[str, str]) -> None:
    assert "Error budget of 99.99 %" in texts[""]
    assert "Budget spent" in texts["topics"]


def test_the_period_before_is_cut_where_this_one_begins(spark: SparkSession) -> None:
    rows = bad_day()
    noon = FIRST_DAY + timedelta(hours=12)
    before = figures_before(frames(spark, rows), Period(began=noon, ended=noon + timedelta(hours=12)))
    assert before is not None
    first_half = [row for row in rows["incidents"] if row["began"] < noon]
    lost = sum((row["ended"] - row["began"]).total_seconds() for row in first_half if row["problem"] == "leaderless")
    assert before.uptime.leaderless_us == pytest.approx(lost * 1e6)
    assert before.uptime.known_us == 40 * (12 * 3600 - 250) * 1_000_000
    assert before.uptime.unknown_us == 40 * 250 * 1_000_000
    assert before.known_clock_us == (12 * 3600 - 250) * 1_000_000
    counts = {"incidents": 15, "failovers": 1, "unclean": 1, "reassignments": 7, "violations": 1, "findings": 3}
    assert {name: count for name, count in before.counts.items() if name != "flaps"} == counts
    assert 0 < before.counts["flaps"] <= sum(row["flaps"] for row in rows["isr_flaps_daily"])
    assert before.exposed_us > 0


def test_the_day_has_causes_that_controllers_emit() -> None:
    causes = {row.get(name) for rows in bad_day(days=60).values() for row in rows for name in ("cause", "ended_by")}
    assert causes - {None, "silence", "end"} <= SAID.keys()


def test_places_name_the_topics_with_most_partitions(spark: SparkSession) -> None:
    wide = [("wide", "t" * 249, partition) for partition in range(3)]
    rows = [
        ("one", "orders", 3),
        ("one", "orders", 3),
        *(("many", f"t{n}", p) for n in range(5) for p in range(n)),
        *wide,
    ]
    given = spark.createDataFrame(rows, "key string, topic string, partition int")
    found = {row["key"]: (row["partitions"], row["places"]) for row in places(given, "key").collect()}
    assert found["one"] == (1, "orders-3")
    assert found["many"] == (10, "t4 (4), t3 (3), t2 (2) and 1 more topic")
    assert found["wide"] == (3, f"{'t' * 30}…{'t' * 29} (3)")


def test_the_files_hold_all_rows_in_the_order_of_their_table(written: ReportSummary) -> None:
    files = {path.name: path for parquet in written.tables for path in (parquet, parquet.with_suffix(".json"))}
    rows = [json.loads(line) for line in files["incidents.json"].read_text().splitlines()]
    assert len(rows) == 15
    assert rows == sorted(rows, key=lambda row: (row["topic"], row["partition"], row["began"]))
    assert rows[0]["began"].endswith("Z")
    assert pyarrow.parquet.read_table(files["incidents.parquet"]).num_rows == 15
    assert HOSTILE in {json.loads(line)["topic"] for line in files["availability_daily.json"].open()}
    assert not [path for path in written.page.parent.rglob("*") if path.name.startswith(".")]
