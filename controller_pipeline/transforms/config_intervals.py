"""What was configured when, and how many replicas in sync that asked for."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from controller_core.journal.changes import Kind
from controller_pipeline.schemas import CONFIG_INTERVALS
from controller_pipeline.transforms.intervals import lasting, placed, with_unknown

_KEY: Final = ("cluster_id", "scope", "name")
_KINDS: Final = (Kind.TOPIC_CONFIG, Kind.TOPIC_CONFIG_REMOVED, Kind.BROKER_CONFIG, Kind.BROKER_CONFIG_REMOVED)
_SET: Final = f"kind in ('{Kind.TOPIC_CONFIG}', '{Kind.BROKER_CONFIG}')"
_EVER: Final = "timestamp '0001-01-01'"
_FOREVER: Final = "timestamp '9999-12-31'"


def config_intervals(events: DataFrame, spans: DataFrame) -> DataFrame:
    """`schemas.CONFIG_INTERVALS`."""
    names = ", ".join(f"'{kind}'" for kind in _KINDS)
    scope = "case when kind like 'topic%' then 'topic' when broker is null then 'default' else 'broker' end as scope"
    rows = events.where(f"kind in ({names})").selectExpr("*", scope)
    rows = rows.selectExpr(
        "*", "case scope when 'topic' then topic when 'broker' then string(broker) else '' end as name"
    )
    rows = lasting(placed(rows, spans), _KEY).where(_SET)
    return with_unknown(rows, ("config",), spans).select(*CONFIG_INTERVALS.schema.fieldNames())


def min_isr_steps(configs: DataFrame) -> DataFrame:
    """The `min.insync.replicas` that each `scope` and `name` which ever set it had: from the beginning of time to its end,
    in steps from `began` to `ended` with a `value`. While it does not say it, its cluster's default does; else it is 1."""
    value = "try_cast(config['min.insync.replicas'] as int) as value"
    told = f"struct(began, if(is_last, {_FOREVER}, ended) as ended, {value}) as told"
    values = configs.where("is_known").selectExpr(*_KEY, told)
    values = values.where("told.value is not null").groupBy(*_KEY).agg(f.collect_list("told").alias("own"))
    defaults = values.where("scope = 'default'").selectExpr("cluster_id", "own as inherited")
    steps = values.join(f.broadcast(defaults), "cluster_id", "left")
    steps = steps.withColumn("inherited", f.coalesce("inherited", f.expr("slice(own, 1, 0)")))
    told = "concat(own, inherited)"
    bounds = f"array({_EVER}), transform({told}, v -> v.began), transform({told}, v -> v.ended), array({_FOREVER})"
    steps = steps.selectExpr("*", f"array_sort(array_distinct(concat({bounds}))) as times")
    own, inherited = (
        f"array_max(filter({values}, v -> v.began <= times[i] and times[i] < v.ended)).value"
        for values in ("own", "inherited")
    )
    step = f"struct(times[i] as began, times[i + 1] as ended, coalesce({own}, {inherited}, 1) as value)"
    return steps.selectExpr(*_KEY, f"inline(transform(sequence(0, size(times) - 2), i -> {step}))")
