"""The history as datasets that Spark keeps up to date, in the order that it finds out itself (Spark Declarative Pipelines).

`lines` grows by the segments that are new, everything else is computed from it. `spark-pipelines` reads this file; each
function is called several times and only says what to compute, so it may neither collect nor write. What is here has no
logic of its own: a table is a call of what `kontroller history` calls as well.

No table names its format: it is Spark's default (`spark.sql.sources.default`). Of a table that is there already Spark would
set the format again, which Delta refuses.
"""

from collections.abc import Callable

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from kontroller.history import schemas
from kontroller.history.answers.all import answer_all
from kontroller.history.schemas import Table
from kontroller.history.sources.journal_files import SEGMENTS, lines_of
from kontroller.history.transforms import broker_intervals as brokers
from kontroller.history.transforms import config_intervals as configs
from kontroller.history.transforms import known_spans as spans
from kontroller.history.transforms import layers
from kontroller.history.transforms import lines as journal_lines
from kontroller.history.transforms import partition_intervals as partitions
from kontroller.history.transforms.accounts.once import once
from kontroller.history.transforms.continuity import breaks

JOURNALS = "spark.kontroller.journals"
"""The setting with the folder that holds the journals, at any depth."""
ANSWERED_FROM = (schemas.EVENTS, schemas.KNOWN_SPANS, schemas.PARTITION_INTERVALS, schemas.BROKER_INTERVALS)


def _session() -> SparkSession:
    session = SparkSession.getActiveSession()
    assert session is not None, "spark-pipelines reads this file, within its session"
    return session


dp.create_streaming_table("lines", comment="The lines of all segments, as they were written")


_VIEW = "{}_of_this_run"


def _table(name: str) -> DataFrame:
    """A table as this run leaves it, by a view (`_view_of`).

    `withColumns` of Spark Connect looks its table up at once. Where that is there from an earlier run, Spark 4.2 takes it
    for one that is not the pipeline's, and reads it before this run has made it anew (apache/spark#57897). A view is in
    no catalog, so that Spark must wait for it."""
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
    return lines_of(reader.format("text").load(_session().conf.get(JOURNALS)))


# Views and tables cut what would be nested deeper than a message of Spark Connect may be, which is 100.
@dp.materialized_view(
    comment="What each line says, checked; kept, as Spark would plan the checks anew wherever it is read"
)
def checked() -> DataFrame:
    return journal_lines.checked(_table("lines"))


@dp.temporary_view
def records() -> DataFrame:
    return journal_lines.judged(_table("checked"))[0]


@dp.temporary_view
def unreadable() -> DataFrame:
    return journal_lines.judged(_table("checked"))[1]


@dp.temporary_view
def repeated() -> DataFrame:
    return once(_dataset("records"))[1]


@dp.materialized_view
def events() -> DataFrame:
    return once(_dataset("records"))[0]


@dp.temporary_view
def marks() -> DataFrame:
    return breaks.marks(_table("events"))


@dp.materialized_view
def findings() -> DataFrame:
    found = _dataset("unreadable").unionByName(_dataset("repeated"))
    known = (_table("known_spans"), _table("config_intervals"))
    return layers.derive(_table("events"), found, _dataset("marks"), *known).findings


@dp.materialized_view
def known_spans() -> DataFrame:
    return spans.known_spans(_dataset("marks"))


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
