"""Targets of links: the first row of a list that says more, and the words to search for in the list.

Lists have their worst rows first, so the first row of a day or cluster is its worst. If the list was cut before that
row, there is no link.
"""

from collections.abc import Mapping
from datetime import date, timedelta

from kontroller.history.reports.facts import Report, Value
from kontroller.history.reports.period import SECOND, moment_of
from kontroller.history.reports.plots.svg import Lead

INCIDENTS = "incidents"


def row_id(listing: str, index: int) -> str:
    """Return the id of a row of a table of the page. `index` counts from 0."""
    return f"{listing}-{index + 1}"


def leads_of_days(report: Report, cluster: str) -> Mapping[date, Lead]:
    """Return the link of each day on which a listed incident of the cluster began or lasted.

    The search is for the incidents that began on the day."""
    found: dict[date, Lead] = {}
    for index, row in enumerate(report.listings[INCIDENTS].rows):
        if row["cluster_id"] != cluster:
            continue
        began_us = int(figure_of(row["began"]))
        first_us = max(began_us, report.period.began_us)
        last_us = min(began_us + round(figure_of(row["seconds"]) * SECOND), report.period.ended_us - 1)
        day, began = moment_of(first_us).date(), moment_of(began_us).date()
        while day <= moment_of(last_us).date():
            found.setdefault(day, Lead(row=row_id(INCIDENTS, index), search=_search(report, cluster, day, began)))
            day += timedelta(days=1)
    return found


def leads_of_clusters(report: Report) -> Mapping[str, Lead]:
    """Return the link of each cluster to its worst listed incident."""
    found: dict[str, Lead] = {}
    for index, row in enumerate(report.listings[INCIDENTS].rows):
        cluster = str(row["cluster_id"])
        found.setdefault(cluster, Lead(row=row_id(INCIDENTS, index), search=cluster))
    return found


def figure_of(value: Value) -> float:
    assert isinstance(value, int | float)
    return value


def _search(report: Report, cluster: str, day: date, began: date) -> str:
    if day != began:
        return ""
    return f"{day} {cluster}" if report.has_many_clusters else f"{day}"
