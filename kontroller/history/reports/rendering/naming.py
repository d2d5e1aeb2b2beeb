"""Names, environments and owners in the tables of clusters and topics."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kontroller.history.reports.facts import Column, Listed, Value
from kontroller.history.reports.names import Names

COLUMNS: Final = (
    Column(title="Name", field="name"),
    Column(title="Environment", field="environment"),
    Column(title="Owner", field="owner"),
)
AFTER: Final = {"clusters": "cluster_id", "levels": "cluster_id", "topics": "topic"}
"""The tables with these columns, and the column that they follow."""


def add_names(listed: Listed, names: Names) -> Listed:
    """Add a column for each thing that is known of any row."""
    if listed.name not in AFTER or names == Names():
        return listed
    columns: list[Column] = []
    for column in listed.columns:
        columns += (column, *(COLUMNS if column.field == AFTER[listed.name] else ()))
    return replace(listed, columns=tuple(columns), rows=tuple({**row, **_describe(row, names)} for row in listed.rows))


def _describe(row: Mapping[str, Value], names: Names) -> Mapping[str, str]:
    cluster = str(row["cluster_id"])
    return names.describe_topic(cluster, str(row["topic"])) if "topic" in row else names.describe_cluster(cluster)
