"""All answers together: every table has its columns, and every plan can stand a large history."""

import pytest
from pyspark.sql import DataFrame, SparkSession

from kontroller.history import schemas
from kontroller.history.answers.all import answer_all
from kontroller.history.schemas import ANSWERS, Table
from tests.spark.answers.literals import Histories
from tests.spark.on_duckdb import list_types


@pytest.fixture(scope="module")
def all_answers(spark: SparkSession) -> dict[Table, DataFrame]:
    nothing = Histories(spark, {})
    layers = {
        schemas.EVENTS: nothing.events,
        schemas.KNOWN_SPANS: nothing.spans,
        schemas.PARTITION_INTERVALS: nothing.partitions,
        schemas.BROKER_INTERVALS: nothing.brokers,
    }
    return answer_all(layers)


def test_every_table_is_answered_with_its_columns_alone(all_answers: dict[Table, DataFrame]) -> None:
    assert tuple(all_answers) == ANSWERS
    for answer, rows in all_answers.items():
        assert rows.columns == answer.schema.fieldNames(), answer.name
        assert list_types(rows.schema) == list_types(answer.schema), answer.name


def test_no_answer_sorts_or_multiplies_the_whole_history(all_answers: dict[Table, DataFrame]) -> None:
    for answer, rows in all_answers.items():
        plan = rows._jdf.queryExecution().executedPlan().toString()
        for costly in ("CartesianProduct", "ArrowEvalPython", "BatchEvalPython", "Exchange SinglePartition"):
            assert costly not in plan, f"{answer.name}: {plan}"
        assert "HashAggregate" in plan or "Window" in plan, f"{answer.name}: nothing was planned: {plan}"
