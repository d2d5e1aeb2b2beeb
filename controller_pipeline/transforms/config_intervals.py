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
    return with_unknown(rows, ("config",)).select(*CONFIG_INTERVALS.schema.fieldNames())


def min_isr_steps(configs: DataFrame) -> DataFrame:
    """The `min.insync.replicas` of the topics that ever set it and (`topic` is null) of all others: `steps` from the
    beginning of time to its end, each with `began`, `ended`, `value`. A topic's own comes before its cluster's; else 1."""
    values = configs.where("is_known and scope in ('topic', 'default')").selectExpr(
        "cluster_id",
        "if(scope = 'topic', name, null) as topic",
        "began",
        f"if(is_last, {_FOREVER}, ended) as ended",
        "int(config['min.insync.replicas']) as value",
    )
    values = values.where("value is not null")
    once = f.lit(True)
    defaults = values.where("topic is null").selectExpr("* except (topic)")
    topics = values.where("topic is not null").groupBy("cluster_id", "topic").agg(once).select("cluster_id", "topic")
    whole = defaults.groupBy("cluster_id").agg(once).selectExpr("cluster_id", "string(null) as topic")
    inherited = topics.unionByName(whole).join(defaults, "cluster_id").selectExpr("*", "false as is_own")
    own = values.where("topic is not null").selectExpr("*", "true as is_own")
    all_of_it = own.unionByName(inherited).groupBy("cluster_id", "topic")
    steps = all_of_it.agg(f.collect_list(f.struct("is_own", "began", "ended", "value")).alias("values"))
    bounds = f"array({_EVER}), transform(values, v -> v.began), transform(values, v -> v.ended), array({_FOREVER})"
    steps = steps.selectExpr("*", f"array_sort(array_distinct(concat({bounds}))) as times")
    then = "array_max(filter(values, v -> v.began <= times[i] and times[i] < v.ended)).value"
    step = f"struct(times[i] as began, times[i + 1] as ended, coalesce({then}, 1) as value)"
    return steps.selectExpr("cluster_id", "topic", f"transform(sequence(0, size(times) - 2), i -> {step}) as steps")
