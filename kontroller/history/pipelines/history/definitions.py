"""The history as datasets of Spark Declarative Pipelines, which Spark keeps up to date in the order that it determines.

`lines` grows with new segments, and everything else is computed from it. `spark-pipelines` reads this file and calls
each function several times, so these must not collect or write. There is no logic here: each table calls a function
that `kontroller history` calls as well.

Tables have Spark's default format (`spark.sql.sources.default`) and do not name one, because Spark would set the format
of existing tables again, which Delta refuses.
"""

from collections.abc import Callable

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from kontroller.history import schemas
from kontroller.history.answers.all import answer_all
from kontroller.history.schemas import Table
from kontroller.history.sources.journal_files import SEGMENTS, lines_of
from kontroller.history.sources.local_files import limit_lines
from kontroller.history.transforms import broker_intervals as brokers
from kontroller.history.transforms import config_intervals as configs
from kontroller.history.transforms import known_spans as spans
from kontroller.history.transforms import layers
from kontroller.history.transforms import lines as journal_lines
from kontroller.history.transforms import partition_intervals as partitions
from kontroller.history.transforms.accounts.once import deduplicate
from kontroller.history.transforms.continuity import breaks
from kontroller.history.transforms.continuity.set_clocks import correct_stamps

JOURNALS = "spark.kontroller.journals"
"""The setting with the folder that has the journals, at any depth."""
ANSWERED_FROM = (schemas.EVENTS, schemas.KNOWN_SPANS, schemas.PARTITION_INTERVALS, schemas.BROKER_INTERVALS)


def _session() -> SparkSession:
    session = SparkSession.getActiveSession()
    assert session is not None, "spark-pipelines reads this file, within its session"
    return session


dp.create_streaming_table("lines", comment="The lines of all segments, as they were written")


_VIEW = "{}_of_this_run"


def _table(name: str) -> DataFrame:
    """Return a table as this run writes it, through a view (`_view_of`).

    In Spark Connect `withColumns` analyzes its table at once. Spark 4.2 does not recognize a table of an earlier run as
    the pipeline's, and reads it before this run has rewritten it (apache/spark#57897). A view is in no catalog, so
    Spark must wait for it."""
    return _dataset(_VIEW.format(name))


def _dataset(name: str) -> DataFrame:
    return _session().read.table(name)


def _view_of(name: str) -> None:
    dp.temporary_view(name=_VIEW.format(name))(lambda: _dataset(name))


for _read in ("lines", "checked", schemas.CONFIG_INTERVALS.name, *(table.name for table in ANSWERED_FROM)):
    _view_of(_read)


@dp.append_flow(target="lines", name="segments")
def segments() -> DataFrame:
    reader = _session().readStream.option("recursiveFileLookup", "true").option("pathGlobFilter", SEGMENTS)
    reader = reader.options(**limit_lines())
    return lines_of(reader.format("text").load(_session().conf.get(JOURNALS)))


# Views and tables split plans that would exceed the nesting limit of Spark Connect messages, which is 100.
@dp.materialized_view(
    name="checked",
    comment="The checked contents of each line; materialized, because Spark would plan the checks at each use",
)
def check_lines() -> DataFrame:
    return journal_lines.check_lines(_table("lines"))


@dp.temporary_view
def records() -> DataFrame:
    return journal_lines.judge(_table("checked"))[0]


@dp.temporary_view
def unreadable() -> DataFrame:
    return journal_lines.judge(_table("checked"))[1]


@dp.temporary_view(name="timed")
def correct_times() -> DataFrame:
    return correct_stamps(_dataset("records"))


@dp.temporary_view(name="repeated")
def find_repeated() -> DataFrame:
    return deduplicate(_dataset("timed"))[1]


@dp.materialized_view
def events() -> DataFrame:
    return deduplicate(_dataset("timed"))[0]


@dp.temporary_view
def marks() -> DataFrame:
    return breaks.marks(_table("events"))


@dp.materialized_view
def findings() -> DataFrame:
    found = _dataset("unreadable").unionByName(_dataset("repeated"))
    known = (_table("known_spans"), _table("config_intervals"))
    return layers.derive(_table("events"), found, _dataset("marks"), *known).findings


@dp.materialized_view(name=schemas.KNOWN_SPANS.name)
def find_known_spans() -> DataFrame:
    return spans.find_known_spans(_dataset("marks"))


@dp.materialized_view
def config_intervals() -> DataFrame:
    return configs.config_intervals(_table("events"), _table("known_spans"))


@dp.materialized_view
def broker_intervals() -> DataFrame:
    return brokers.broker_intervals(_table("events"), _table("known_spans"))


@dp.materialized_view
def partition_intervals() -> DataFrame:
    return partitions.partition_intervals(_table("events"), _table("known_spans"), _table("config_intervals"))


def _answer(table: Table) -> Callable[[], DataFrame]:
    def answer() -> DataFrame:
        return answer_all({layer: _table(layer.name) for layer in ANSWERED_FROM})[table]

    return answer


for _one in schemas.ANSWERS:
    dp.materialized_view(name=_one.name)(_answer(_one))
