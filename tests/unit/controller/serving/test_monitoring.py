"""The alerts and the dashboard of the chart ask for metrics that operator and controller really have."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, Metric

from controller_core.admin.authorizing.authorization import Authorization
from controller_core.admin.authorizing.known_acls import KnownAcls
from controller_core.audit.trail import open_trail
from controller_core.journal.writer import Counts
from controller_core.model.authorization.decision import AuthorizerRules
from controller_core.process.journal import TOPIC_PREFIX, JournalMetrics
from controller_core.wire.listener.refusals import Refusals
from controller_operator.kubernetes.object_store import ObjectStore
from controller_operator.metrics import OperatorMetrics
from simulation.cluster import Cluster

CHART: Final = Path(__file__).parents[4] / "charts" / "kontroller"
ALERTS: Final = (CHART / "templates" / "alerts.yaml").read_text()
DASHBOARD: Final = json.loads((CHART / "dashboards" / "kontroller.json").read_text())
SUFFIXES: Final = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}
JOURNALS: Final = (*JournalMetrics(Counts()).collect(), *JournalMetrics(Counts(), TOPIC_PREFIX).collect())
NAME: Final = re.compile(r"\bkontroller_\w+")
FAMILY: Final = re.compile("_(total|bucket|sum|count)$")


def names(metrics: Iterable[Metric]) -> set[str]:
    """The names of all series that the metrics can have."""
    return {metric.name + suffix for metric in metrics for suffix in SUFFIXES[metric.type]}


def queries(panels: Iterable[dict[str, list[dict[str, str]]]]) -> Iterator[str]:
    for panel in panels:
        yield from (target["expr"] for target in panel.get("targets", ()))


def list_all_queries() -> Iterator[str]:
    """Yield the queries of the panels and of the variables, by which a namespace and a release are chosen."""
    yield from queries(DASHBOARD["panels"])
    yield from (each["query"]["query"] for each in DASHBOARD["templating"]["list"] if each["type"] == "query")


async def list_exported(cluster: Cluster) -> set[str]:
    """Return the names of the metrics of a controller with a cluster, and of an operator."""
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    operator, store = OperatorMetrics(), ObjectStore()
    operator.observe(store.count_conditions, store.list_unready, store.list_disks)
    open_trail("operator", (), operator.registry)
    listener = CollectorRegistry()
    Refusals(listener)
    Authorization(AuthorizerRules(), KnownAcls(cluster.zk.session()), listener)
    return names(cluster.active.registry.collect()) | names(operator.registry.collect()) | names(listener.collect())


async def test_every_metric_of_an_alert_is_there(cluster: Cluster) -> None:
    asked = {name for line in ALERTS.splitlines() if "expr:" in line for name in NAME.findall(line)}
    assert "kontroller_active_controller" in asked
    assert asked <= await list_exported(cluster) | names(JOURNALS)


async def test_every_metric_that_an_alert_recommends_is_there(cluster: Cluster) -> None:
    known = {FAMILY.sub("", name) for name in await list_exported(cluster) | names(JOURNALS)}
    assert {FAMILY.sub("", name) for name in NAME.findall(ALERTS)} <= known


async def test_every_metric_of_the_dashboard_is_there(cluster: Cluster) -> None:
    asked = {name for query in list_all_queries() for name in NAME.findall(query)}
    assert asked <= await list_exported(cluster)


async def test_the_dashboard_leaves_out_only_what_another_panel_shows_too(cluster: Cluster) -> None:
    shown = {FAMILY.sub("", name) for query in queries(DASHBOARD["panels"]) for name in NAME.findall(query)}
    there = {FAMILY.sub("", name) for name in await list_exported(cluster)}
    assert there - shown == {"kontroller_controller_epoch", "kontroller_topics"}
