"""The history as datasets that Spark keeps up to date, in the order that it finds out itself (Spark Declarative Pipelines).

`lines` grows by the segments that are new, everything else is computed from it. `spark-pipelines` reads this file; each
function is called several times and only says what to compute, so it may neither collect nor write. What is here has no
logic of its own: a table is a call of what `kontroller history` calls as well.
"""

from collections.abc import Callable

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from controller_pipeline import schemas
from controller_pipeline.answers.all import answer_all
from controller_pipeline.schemas import LONG, Table
from controller_pipeline.sources.journal_files import SEGMENTS
from controller_pipeline.transforms import broker_intervals as brokers
from controller_pipeline.transforms import config_intervals as configs
from controller_pipeline.transforms import journals, layers
from controller_pipeline.transforms import known_spans as spans
from controller_pipeline.transforms import lines as journal_lines
from controller_pipeline.transforms import partition_intervals as partitions

JOURNALS = "spark.kontroller.journals"
"""The setting with the folder that holds the journals, at any depth."""
FORMAT = "spark.kontroller.format"
"""The setting with the format of all tables; without it they are Parquet."""
FORMATS = ("parquet", "delta")
ANSWERED_FROM = (schemas.EVENTS, schemas.KNOWN_SPANS, schemas.PARTITION_INTERVALS, schemas.BROKER_INTERVALS)


def _session() -> SparkSession:
    session = SparkSession.getActiveSession()
    assert session is not None, "spark-pipelines reads this file, within its session"
    return session


def _format() -> str:
    asked = _session().conf.get(FORMAT, FORMATS[0])
    if asked not in FORMATS:
        raise ValueError(f"no tables in {asked!r}: set {FORMAT} in spark-pipeline.yml to {' or '.join(FORMATS)}")
    return asked


_FORMAT = _format()
dp.create_streaming_table("lines", comment="The lines of all segments, as they were written", format=_FORMAT)


def _kept(query: Callable[[], DataFrame], name: str | None = None) -> None:
    """Declares a materialized view in the format that is asked for, under the function's name if none is given."""
    # Spark takes a format and its type hints lack it.
    declare = dp.materialized_view(name=name or query.__name__, format=_FORMAT)  # type: ignore[call-overload]
    declare(query)


def _table(name: str) -> DataFrame:
    return _session().read.table(name)


@dp.append_flow(target="lines", name="segments")
def segments() -> DataFrame:
    reader = _session().readStream.option("recursiveFileLookup", "true").option("pathGlobFilter", SEGMENTS)
    rows = reader.format("text").load(_session().conf.get(JOURNALS))
    source = f.col("_metadata.file_path")
    journal = f.regexp_replace(source, "/[^/]*$", "")
    return rows.select("value", source.alias("source"), journal.alias("journal"), f.lit(None).cast(LONG).alias("line"))


# Views and tables cut what would be nested deeper than a message of Spark Connect may be, which is 100.
@dp.temporary_view
def records() -> DataFrame:
    return journal_lines.read(_table("lines"))[0]


@dp.temporary_view
def unreadable() -> DataFrame:
    return journal_lines.read(_table("lines"))[1]


@dp.temporary_view
def repeated() -> DataFrame:
    return journals.once(_table("records"))[1]


@_kept
def events() -> DataFrame:
    return journals.once(_table("records"))[0]


@_kept
def findings() -> DataFrame:
    found = _table("unreadable").unionByName(_table("repeated"))
    return layers.derive(_table("events"), found, _table("known_spans"), _table("config_intervals")).findings


@_kept
def known_spans() -> DataFrame:
    return spans.known_spans(_table("events"))


@_kept
def config_intervals() -> DataFrame:
    return configs.config_intervals(_table("events"), _table("known_spans"))


@_kept
def broker_intervals() -> DataFrame:
    return brokers.broker_intervals(_table("events"), _table("known_spans"))


@_kept
def partition_intervals() -> DataFrame:
    return partitions.partition_intervals(_table("events"), _table("known_spans"), _table("config_intervals"))


def _answer(table: Table) -> Callable[[], DataFrame]:
    def answer() -> DataFrame:
        return answer_all({layer: _table(layer.name) for layer in ANSWERED_FROM})[table]

    return answer


for _one in schemas.ANSWERS:
    _kept(_answer(_one), _one.name)
