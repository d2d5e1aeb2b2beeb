"""The page of a plan is one bounded file without dependencies, names the unknown, and escapes every name."""

import base64
import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from controller_planner.goals import Goals, Mode
from controller_planner.loads import LoadSnapshot
from controller_planner.plan import Plan
from controller_planner.planning import make_plan
from kontroller.command_line import main
from kontroller.planning.page import MOST_BROKERS, MOST_MOVES, format_page
from kontroller.planning.snapshot_file import StoredLoads, write_snapshot
from simulation.cluster.names import tp
from tests.unit.planner.clusters import UNKNOWN, make_cluster
from tests.unit.planning.snapshots import GIB, make_partition, make_snapshot
from tests.unit.reports.html import Page

HOSTILE = '</td><script>alert(1)</script>"\u202e'
MIB = 1 << 20


def drain(snapshot: LoadSnapshot, *brokers: int) -> Plan:
    return make_plan(snapshot, Goals(mode=Mode.DRAIN, brokers=brokers))


def make_hostile() -> LoadSnapshot:
    snapshot = replace(make_snapshot(), cluster_id=HOSTILE)
    partitions = replace(snapshot.partitions, topics=(HOSTILE,))
    brokers = replace(snapshot.brokers, racks=(HOSTILE, "b", "c", HOSTILE))
    return replace(snapshot, partitions=partitions, brokers=brokers)


def make_many(brokers: int, partitions: int) -> Plan:
    """Return a drain of broker 0, which has a replica of each partition."""
    rows = [[0, 1 + number % (brokers - 1)] for number in range(partitions)]
    return drain(make_cluster(rows, brokers=brokers), 0)


PAGES = {
    "a drain": format_page(drain(make_snapshot(), 1), ("broker 9: it does not answer",), (), 50 * MIB),
    "nothing": format_page(drain(make_cluster([[1]], brokers=2), 0), (), ()),
    "no partitions": format_page(make_plan(make_cluster([], brokers=2), Goals()), (), ()),
    "hostile": format_page(drain(make_hostile(), 1), (HOSTILE,) * 2, (HOSTILE,)),
    "many": format_page(make_many(400, 20_000), ("broker 9: it does not answer",) * 500, (), 50 * MIB),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_well_formed_and_asks_for_nothing_from_elsewhere(name: str) -> None:
    read = Page(PAGES[name])
    references = [value for attribute in ("src", "href", "srcset", "action") for value in read.attributes(attribute)]
    assert all(reference.startswith("#") for reference in references), references
    assert {reference[1:] for reference in references} <= set(read.attributes("id"))
    digest = base64.b64encode(hashlib.sha256(read.scripts[0].encode()).digest()).decode()
    assert any(f"'sha256-{digest}'" in content for content in read.attributes("content"))
    assert len(read.scripts) == 1


def test_a_drain_shows_brokers_moves_reasons_bytes_time_and_the_unknown() -> None:
    read = Page(PAGES["a drain"])
    assert "6 partitions change; 6 of them copy data. Nothing has been moved yet." in read.text
    assert "6 → 0" in read.sections["brokers"]
    assert "A replica leaves a broker that is drained." in read.sections["reasons"]
    assert "orders-0" in read.sections["moves"]
    assert "read traffic unknown" in read.sections["unknown"]
    assert "broker 9: it does not answer" in read.sections["unknown"]
    assert "2 min 3 s" in read.text  # 6 GiB to one broker


def test_a_relief_has_its_title_and_its_reason() -> None:
    plan = make_plan(make_snapshot(), Goals(mode=Mode.RELIEVE, brokers=(1,), below_percent=4))
    read = Page(format_page(plan, (), ()))
    assert "Relief of full disks of prod" in read.text
    assert "A replica leaves a broker whose disks are too full." in read.sections["reasons"]


def test_a_time_needs_a_rate_and_says_so() -> None:
    text = Page(format_page(drain(make_snapshot(), 1), (), ())).text
    assert "not known" in text
    assert "Give --throttle: the busiest brokers copy 6.0 GiB" in text


def test_the_same_plan_gives_the_same_page() -> None:
    assert format_page(drain(make_snapshot(), 1), (), ()) == format_page(drain(make_snapshot(), 1), (), ())


def test_names_are_escaped_and_letters_that_turn_the_text_are_replaced() -> None:
    assert "<script>alert" not in PAGES["hostile"]
    assert "\u202e" not in PAGES["hostile"]
    assert "<script>alert(1)" in Page(PAGES["hostile"]).sections["moves"]


def test_a_page_of_many_brokers_and_moves_is_bounded_and_says_what_is_missing() -> None:
    read = Page(PAGES["many"])
    assert f"The {MOST_BROKERS} brokers whose loads change most, of 400" in read.sections["brokers"]
    assert f"First {MOST_MOVES:,} of 20,000" in read.sections["moves"]
    assert read.sections["moves"].count("t-") == MOST_MOVES
    assert "First 100 of" in read.sections["unknown"]
    assert len(PAGES["many"]) < 2 * MIB


def test_a_plan_that_moves_nothing_says_so() -> None:
    read = Page(PAGES["nothing"])
    assert "Nothing to move." in read.text
    assert "moves" not in read.sections


def test_loads_that_nobody_measured_have_no_column_and_no_number() -> None:
    nothing = [UNKNOWN] * 4
    cluster = make_cluster(
        [[0]] * 4, brokers=2, size_bytes=nothing, in_bytes_per_second=nothing, out_bytes_per_second=nothing
    )
    read = Page(format_page(drain(cluster, 0), (), ()))
    assert "Bytes in" not in read.sections["brokers"]
    assert read.sections["balance"].count("unknown") == 6
    assert "4 of 4 have an unknown size" in read.text


@pytest.mark.parametrize(("rate", "seconds"), [(GIB, 6), (6 * GIB, 1)])
def test_the_command_prints_the_page_and_other_formats_the_expected_time(
    tmp_path: Path, rate: int, seconds: int
) -> None:
    path = tmp_path / "loads.parquet"
    write_snapshot(path, StoredLoads(snapshot=make_snapshot()))
    asked = ["plan", "drain", "--broker", "1", "--snapshot", str(path), "--throttle", str(rate)]
    assert CliRunner().invoke(main, [*asked, "-o", "html"]).stdout.startswith("<!doctype html>")
    assert (
        f"expected time: {seconds} s, at {rate / GIB:.1f} GiB/s for each broker"
        in CliRunner().invoke(main, asked).stdout
    )
    assert f'"expectedSeconds": {seconds},' in CliRunner().invoke(main, [*asked, "-o", "json"]).stdout


def test_an_estimate_counts_the_busiest_broker_of_each_batch_and_unknown_sizes_as_the_mean() -> None:
    partitions = {
        tp("orders", 0): make_partition(1, 2, 3, size=2 * GIB),
        tp("orders", 1): make_partition(1, 2, 3, size=None),
    }
    text = Page(format_page(drain(make_snapshot(partitions), 1), (), (), GIB)).text
    assert "at least 2.0 GiB" in text
    assert "4 s" in text
    assert np.isnan(drain(make_snapshot(partitions), 1).bytes_copied).sum() == 1
