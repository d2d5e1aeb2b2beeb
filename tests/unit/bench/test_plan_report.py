"""The tables of plans, and the bars that they name as missed."""

from bench.plan.report import (
    InstanceRow,
    Result,
    SmallRow,
    make_instances_table,
    make_missed_list,
    make_others_table,
    make_small_table,
)

ROW = InstanceRow(
    instance="a",
    mode="rebalance",
    partitions=1_000,
    brokers=9,
    seconds=0.5,
    processor_seconds=0.456,
    memory_gib=0.1,
    before=(1.5, 2.0, 1.0, 1.0, 1.0),
    after=(1.05, 1.05, 1.0, 1.0, 1.0),
    gigabytes=1234.5,
    times_bound=1.0712,
    next_leaders=(4, 5),
    others={"greedy": (1.2, 1.5)},
    missed=("a: 1.071 times the bytes of the bound; the bar is 1.06",),
)
SMALL = SmallRow(instance="b", excess=0.0, optimum_excess=0.0, times_bytes=1.5, is_proven=False, missed=("b: x",))
RESULT = Result(instances=(ROW,), small=(SMALL,))


def test_a_row_has_the_cost_the_balance_and_the_bytes_over_the_bound() -> None:
    last = make_instances_table(RESULT).splitlines()[-1]
    assert last == (
        "| a | rebalance | 1,000 on 9 | 0.50 | 0.46 | 0.10 | 1.50 2.00 1.00 1.00 1.00 | 1.050 1.050 1.000 1.000 1.000 "
        "| 1,234 | 1.071 | 4 of 5 |"
    )
    assert make_others_table(RESULT).splitlines()[-1] == "| a | greedy | 1.20 | 1.50 |"
    assert make_small_table(RESULT).splitlines()[-1] == "| b | 0.000 | 0.000 | 1.500 | no |"


def test_each_missed_bar_is_named() -> None:
    assert make_missed_list(RESULT).splitlines() == [f"- {ROW.missed[0]}", "- b: x"]
    assert make_missed_list(Result()) == "No bar was missed."
