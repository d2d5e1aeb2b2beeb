"""An objective has a budget of lost time, which is known time's alone."""

import math
from dataclasses import replace

import pytest

from kontroller.history.reports.facts import Uptime
from kontroller.history.reports.objective import Objective
from kontroller.history.reports.period import DAY, HOUR, MINUTE, SECOND
from kontroller.history.reports.rendering.budgets import add_budgets, budgets
from kontroller.history.reports.rendering.page import page
from tests.unit.reports.facts import empty_report, full_report
from tests.unit.reports.html import Page

THREE_NINES = Objective(percent=99.9)


def test_a_budget_is_what_the_objective_leaves_of_known_time() -> None:
    budget = THREE_NINES.budget(1000 * HOUR, 15 * MINUTE)
    assert (budget.allowed_us, budget.left_us, budget.spent_share) == (HOUR, 45 * MINUTE, 0.25)
    assert THREE_NINES.budget(1000 * HOUR, 2 * HOUR).left_us == -HOUR
    assert THREE_NINES.compute_spent_share(0.9995) == pytest.approx(0.5)


def test_no_known_time_has_no_budget() -> None:
    assert THREE_NINES.budget(0, 0).spent_share is None
    (all_of_it, _) = budgets(replace(empty_report(), objective=THREE_NINES))
    assert all_of_it.tone == "unknown"


@pytest.mark.parametrize("percent", [0.0, 0.99, 100.0, 99.99999999999, 9_990.0, -5.0, math.nan, math.inf])
def test_an_objective_without_a_budget_or_a_promise_is_refused(percent: float) -> None:
    with pytest.raises(ValueError, match="give one from 1 to 99"):
        Objective(percent=percent)


@pytest.mark.parametrize(
    ("lost", "said", "tone"),
    [
        (0, "0 % of 1 min 26 s spent, 1 min 26 s left", "good"),
        (60 * SECOND, "70 % of 1 min 26 s spent, 26 s left", "warn"),
        (172 * SECOND, "200 % of 1 min 26 s spent, overspent by 1 min 26 s", "bad"),
    ],
)
def test_a_budget_is_told_with_what_is_left(lost: int, said: str, tone: str) -> None:
    report = replace(full_report(), uptime=Uptime(known_us=DAY, leaderless_us=lost))
    (led, _) = budgets(report)
    assert (led.said, led.tone) == (said, tone)


def test_topics_namespaces_and_clusters_have_their_own_budgets() -> None:
    report = full_report()
    for name in ("topics", "namespaces", "clusters"):
        listed = add_budgets(report.listings[name], THREE_NINES)
        assert [column.title for column in listed.columns if column.kind == "spent"] == [
            "Budget spent",
            "Writers' budget",
        ]
        assert listed.rows[0]["budget"] == pytest.approx(0.13)
        assert add_budgets(report.listings[name], None) is report.listings[name]
    assert add_budgets(report.listings["incidents"], THREE_NINES) is report.listings["incidents"]


def test_a_page_without_an_objective_speaks_of_no_budget() -> None:
    assert "Error budget of 99.9 %" in Page(page(full_report())).text
    assert "udget" not in Page(page(replace(full_report(), objective=None))).text
