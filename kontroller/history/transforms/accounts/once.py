"""Returns each record once. If an epoch has several accounts, the times in which they know the state decide (`choice`):

a minute of a controller's journal says little about a day that a recorder saw.

If several accounts are used for an epoch, the records of a later part are numbered after those of the earlier parts.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as f

from kontroller.history.schemas import EVENTS, LONG, TEXT, columns
from kontroller.history.transforms.accounts.agreement import FROM, accounts, content
from kontroller.history.transforms.accounts.choice import choose_pieces, rank_accounts
from kontroller.history.transforms.accounts.stretches import Mark, account_of, marks
from kontroller.history.transforms.continuity.neighbours import EPOCH, PART, bucket
from kontroller.history.transforms.continuity.set_clocks import differences, is_set
from kontroller.history.transforms.in_groups import Compute, apply_to_groups, leave
from kontroller.history.transforms.journals import make_finding
from kontroller.history.transforms.lines import LOGS

_NAMES: Final = EVENTS.schema.fieldNames()
_PIECES: Final = columns(
    of_cluster=TEXT, of_epoch=LONG, of_account=TEXT, best=TEXT, part=LONG, from_seq=LONG, until_seq=LONG, until_us=LONG
)
_IS_TAKEN: Final = (
    "cluster_id = of_cluster AND controller_epoch = of_epoch AND account = of_account "
    "AND seq BETWEEN from_seq AND until_seq AND unix_micros(event_time) < until_us"
)


def deduplicate(events: DataFrame, compute: Compute = leave) -> tuple[DataFrame, DataFrame]:
    """Return each record of the selected parts once, and findings `two_journals` and `two_records`.

    The times of the records are those of `set_clocks`. `compute`: applied to the few rows that say which journals and
    parts are used. Uncomputed, they are in the plan as often as they are used, more than a hundred times in all."""
    named = f.broadcast(compute(accounts(events)))
    told = events.join(named, [*EPOCH, "journal"], "left")
    chosen = f.broadcast(compute(_choose(told.where("account IS NOT NULL"))))
    placed = told.join(chosen, f.expr(_IS_TAKEN), "left")
    taken = placed.where("account IS NULL OR part IS NOT NULL")
    taken = taken.withColumn("seq", f.coalesce("part", f.lit(0)) * PART + f.col("seq"))
    kept, again = _each_once(taken.select(*_NAMES))
    left = told.where("account IS NOT NULL").join(chosen, f.expr(_IS_TAKEN), "left_anti")
    best = chosen.groupBy("of_cluster", "of_epoch").agg(f.max("best").alias("best"))
    best = best.selectExpr("of_cluster AS cluster_id", "of_epoch AS controller_epoch", "best")
    return kept, _find_two_journals(left.join(f.broadcast(best), [*EPOCH])).unionByName(_find_two_records(again))


def count_records(events: DataFrame) -> DataFrame:
    """Return the number of `records` of each cluster, `is_of_logs`, and `is_once`: True if `correct_stamps` and
    `deduplicate` would change nothing.

    It is True if each epoch is in one journal, has each number once, and no clock was set within a term. Most clusters
    are like this, and a few columns show it, while the others are read several times."""
    terms = events.groupBy(*EPOCH).agg(
        f.count("*").alias("records"),
        f.count_distinct("seq").alias("numbers"),
        f.min("journal").alias("first_journal"),
        f.max("journal").alias("last_journal"),
        f.max(f.col("origin") == LOGS).alias("is_of_logs"),
    )
    is_once = f.expr("numbers = records and first_journal = last_journal")
    of = terms.groupBy("cluster_id").agg(
        f.sum("records").alias("records"),
        f.max("is_of_logs").alias("is_of_logs"),
        f.every(is_once).alias("is_once"),
    )
    were_set = differences(events).where(is_set(f.col("least"), f.col("most")))
    were_set = were_set.groupBy("cluster_id").agg(f.lit(True).alias("was_set"))
    found = of.join(f.broadcast(were_set), "cluster_id", "left")
    return found.selectExpr("cluster_id", "records", "is_of_logs", "is_once and was_set is null as is_once")


def _choose(told: DataFrame) -> DataFrame:
    """Return the parts of each epoch's accounts to use, with their ranges."""
    return apply_to_groups(marks(told), EPOCH, (*EPOCH, *Mark._fields), _choose_for_epoch, _PIECES)


def _choose_for_epoch(of: Sequence[Row]) -> Iterator[dict[str, object]]:
    by_account = attrgetter("account")
    rows = sorted((Mark(*(row[name] for name in Mark._fields)) for row in of), key=by_account)
    found = [account_of(name, own) for name, own in groupby(rows, by_account)]
    best = rank_accounts(found)[0].name
    for piece in choose_pieces(found):
        yield {
            "of_cluster": of[0]["cluster_id"],
            "of_epoch": of[0]["controller_epoch"],
            "of_account": piece.account,
            "best": best,
            "part": piece.part,
            "from_seq": piece.first_seq,
            "until_seq": piece.last_seq,
            "until_us": piece.until_us,
        }


def _each_once(taken: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return each record once, and the records that contradict another one with their number.

    Only buckets with a repeated number are compared by their contents."""
    kept = taken.withColumns({"content": content(), "bucket": bucket()})
    repeated = kept.groupBy(*EPOCH, "bucket", "seq").count().where("count > 1")
    repeated = f.broadcast(repeated.groupBy(*EPOCH, "bucket").agg(f.count("*").alias("numbers")))
    whole = kept.join(repeated, [*EPOCH, "bucket"], "left_anti")
    first = Window.partitionBy(*EPOCH, "bucket").orderBy("seq", "content", *FROM)
    compared = kept.join(repeated, [*EPOCH, "bucket"], "left_semi").withColumns(
        {"before": f.lag("seq").over(first), "content_before": f.lag("content").over(first)}
    )
    is_again = f.coalesce(f.col("before") == f.col("seq"), f.lit(False))
    again = compared.where(is_again & (f.col("content_before") != f.col("content")))
    return whole.select(*_NAMES).unionByName(compared.where(~is_again).select(*_NAMES)), again


def _find_two_journals(left: DataFrame) -> DataFrame:
    """Return a finding for each journal that is not used completely."""
    rows = left.groupBy(*EPOCH, "journal", "best").agg(
        f.count_distinct("seq").alias("records"), f.min("seq").alias("seq"), f.min("event_time").alias("event_time")
    )
    detail = f.concat(f.lit("another account knows more of this epoch, or is more trusted, and is used: "), "best")
    return make_finding(rows.withColumn("source", f.col("journal")), "two_journals", f.col("records"), detail)


def _find_two_records(again: DataFrame) -> DataFrame:
    detail = f.lit("the same journal has another record with this number, which is used")
    return make_finding(again, "two_records", f.lit(1), detail)
