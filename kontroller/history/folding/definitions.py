"""The definitions of the large tables of a fold, each with the tables that it reads.

`scripts.duckdb_sql` compiles the same functions to SQL for DuckDB (`embedded`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from kontroller.history.folding.tables import CHANGES, JOURNALS, MARKS, RAW_EVENTS
from kontroller.history.schemas import (
    BROKER_INTERVALS,
    CONFIG_INTERVALS,
    EVENTS,
    FINDINGS,
    FLAG,
    KNOWN_SPANS,
    LONG,
    PARTITION_INTERVALS,
    PROOFS,
    TEXT,
    Table,
    columns,
)
from kontroller.history.transforms import journals, layers, lines
from kontroller.history.transforms.accounts.once import count_records
from kontroller.history.transforms.broker_intervals import broker_intervals
from kontroller.history.transforms.changes import changes
from kontroller.history.transforms.config_intervals import config_intervals
from kontroller.history.transforms.continuity import breaks
from kontroller.history.transforms.partition_intervals import partition_intervals
from kontroller.history.transforms.proofs import CHECKSUMS, snapshot_checksums
from kontroller.history.transforms.unknown_topics import unknown_topics


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A table that follows from the rows of the same clusters in other tables, by `make`."""

    name: str
    make: Callable[..., DataFrame]
    reads: tuple[Table, ...]
    schema: StructType


SNAPSHOT_CHECKSUMS: Final = Table(name="snapshot_checksums", schema=CHECKSUMS, order=PROOFS.order)
"""The sums of the entries of snapshots. A few rows that are not kept."""

COUNTS: Final = columns(cluster_id=TEXT, records=LONG, is_of_logs=FLAG, is_once=FLAG)

OF_WRITERS: Final = Definition(name="writers", make=journals.find_writers, reads=(RAW_EVENTS,), schema=JOURNALS.schema)
OF_COUNTS: Final = Definition(name="counts", make=count_records, reads=(RAW_EVENTS,), schema=COUNTS)
OF_EVENTS: Final = Definition(name="events", make=lines.add_origins, reads=(RAW_EVENTS, JOURNALS), schema=EVENTS.schema)
"""The events of clusters whose raw records are all used as they are."""
OF_MARKS: Final = Definition(name="marks", make=breaks.marks, reads=(EVENTS,), schema=MARKS.schema)
OF_CHANGES: Final = Definition(name="changes", make=changes, reads=(EVENTS, KNOWN_SPANS), schema=CHANGES.schema)
OF_CHECKSUMS: Final = Definition(
    name="snapshot_checksums", make=snapshot_checksums, reads=(EVENTS, KNOWN_SPANS), schema=CHECKSUMS
)
OF_CONFIGS: Final = Definition(
    name="config_intervals", make=config_intervals, reads=(CHANGES, KNOWN_SPANS), schema=CONFIG_INTERVALS.schema
)
OF_UNKNOWN_TOPICS: Final = Definition(
    name="unknown_topics", make=unknown_topics, reads=(CHANGES, KNOWN_SPANS), schema=FINDINGS.schema
)
OF_BROKERS: Final = Definition(
    name="broker_intervals", make=broker_intervals, reads=(CHANGES, KNOWN_SPANS), schema=BROKER_INTERVALS.schema
)
OF_PARTITIONS: Final = Definition(
    name="partition_intervals",
    make=partition_intervals,
    reads=(CHANGES, KNOWN_SPANS, CONFIG_INTERVALS),
    schema=PARTITION_INTERVALS.schema,
)
OF_PROOFS: Final = Definition(
    name="proofs",
    make=layers.proofs_in_time,
    reads=(CHANGES, KNOWN_SPANS, SNAPSHOT_CHECKSUMS),
    schema=PROOFS.schema,
)
DEFINITIONS: Final = (
    OF_WRITERS, OF_COUNTS, OF_EVENTS, OF_MARKS, OF_CHANGES, OF_CHECKSUMS, OF_CONFIGS, OF_UNKNOWN_TOPICS, OF_BROKERS,
    OF_PARTITIONS, OF_PROOFS,
)  # fmt: skip
