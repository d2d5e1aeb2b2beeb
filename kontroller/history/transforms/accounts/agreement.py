"""Groups the journals of an epoch into accounts.

An account is the union of one writer's journals: copies and parts of one journal agree wherever they overlap. A
controller and a recorder beside it, two recorders, or two controllers that wrongly share the epoch, have separate
accounts. Only epochs with several journals are compared.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as f
from pyspark.sql.types import MapType

from kontroller.history.schemas import EVENTS, LONG, TEXT, columns
from kontroller.history.transforms.continuity.neighbours import EPOCH
from kontroller.history.transforms.in_groups import apply_to_groups
from kontroller.history.transforms.lines import CONTROLLER

FROM: Final = ("origin", "journal", "source")
"""The columns that name the origin of a record."""
_NOT_SAID: Final = (*FROM, "left_out")
"""All other columns are its contents."""
_PLACE: Final = (*EPOCH, "seq")
_JOURNAL: Final = (*EPOCH, "journal", "origin")
_MAPS: Final = tuple(field.name for field in EVENTS.schema if isinstance(field.dataType, MapType))
_NAMED: Final = columns(cluster_id=TEXT, controller_epoch=LONG, journal=TEXT, account=TEXT)


class Journal(NamedTuple):
    """A journal of an epoch that several journals have."""

    journal: str
    origin: str
    controller_id: int | None
    """The controller of a controller's journal."""
    records: int
    contradicts: list[str]
    """The journals with other contents under the same number."""


def accounts(events: DataFrame) -> DataFrame:
    """Return the journals of each epoch with several accounts.

    The columns are `cluster_id`, `controller_epoch`, `journal`, and `account`, the name of one journal of the account.
    """
    said = f.struct("journal", "origin", "contents", "controller_id")
    places = _select_contested(events).groupBy(*_PLACE).agg(f.collect_list(said).alias("said"))
    told = places.selectExpr(*EPOCH, "said", "explode(said) AS one").selectExpr(
        *EPOCH, "one.*",
        "transform(filter(said, s -> NOT arrays_overlap(s.contents, one.contents)), s -> s.journal) AS others",
    )  # fmt: skip
    journals = told.groupBy(*_JOURNAL).agg(
        f.max("controller_id").alias("controller_id"),
        f.count("*").alias("records"),
        f.array_distinct(f.flatten(f.collect_set("others"))).alias("contradicts"),
    )
    return apply_to_groups(journals, EPOCH, (*EPOCH, *Journal._fields), _group_epoch, _NAMED)


def group_journals(journals: Iterable[Journal]) -> dict[str, str]:
    """Return the account of each journal of an epoch, or nothing if all are one account.

    A journal joins the account of the largest journal of its writer that it does not contradict."""
    members: dict[str, list[Journal]] = {}
    for journal in sorted(journals, key=lambda journal: (-journal.records, journal.journal)):
        agreeing = (account for account, others in members.items() if all(_agree(journal, other) for other in others))
        members.setdefault(next(agreeing, journal.journal), []).append(journal)
    if len(members) == 1:
        return {}
    return {journal.journal: account for account, others in members.items() for journal in others}


def content() -> Column:
    """Return a hash of the contents of a record, which does not depend on the place that it was written to."""
    recorded = (name for name in EVENTS.schema.fieldNames() if name not in _NOT_SAID)
    values = (f.to_json(name) if name in _MAPS else f.col(name) for name in recorded)
    # A null does not change the hash, so the places between the values distinguish the columns.
    return f.xxhash64(*(part for place, value in enumerate(values) for part in (value, f.lit(place))))


def _select_contested(events: DataFrame) -> DataFrame:
    """Return the records of epochs with several journals, once per journal. `contents` has the hashes of its versions
    there."""
    several = events.groupBy(*EPOCH).agg(f.count_distinct("journal").alias("journals")).where("journals > 1")
    rows = events.join(f.broadcast(several), [*EPOCH], "left_semi").withColumn("content", content())
    return rows.groupBy(*_PLACE, "journal", "origin").agg(
        f.collect_set("content").alias("contents"),
        f.max(f.when(f.col("origin") == CONTROLLER, f.col("controller_id"))).alias("controller_id"),
    )


def _agree(one: Journal, other: Journal) -> bool:
    is_of_one_writer = one[1:3] == other[1:3]
    return is_of_one_writer and one.journal not in other.contradicts and other.journal not in one.contradicts


def _group_epoch(journals: Sequence[Row]) -> Iterator[dict[str, object]]:
    named = group_journals(Journal(*(row[name] for name in Journal._fields)) for row in journals)
    place = {name: journals[0][name] for name in EPOCH}
    for journal, account in sorted(named.items()):
        yield place | {"journal": journal, "account": account}
