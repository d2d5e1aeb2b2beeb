"""Configurations over time, and the `min.insync.replicas` that they set, including brokers' own files."""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from controller_core.journal.changes import Kind
from kontroller.history.schemas import CONFIG_INTERVALS
from kontroller.history.transforms.intervals import add_ends, add_unknown, place_records

_KEY: Final = ("cluster_id", "scope", "name")
_KINDS: Final = (Kind.TOPIC_CONFIG, Kind.TOPIC_CONFIG_REMOVED, Kind.BROKER_CONFIG, Kind.BROKER_CONFIG_REMOVED)
_SET: Final = f"kind in ('{Kind.TOPIC_CONFIG}', '{Kind.BROKER_CONFIG}')"
MIN_ISR: Final = (
    "if(config['min.insync.replicas'] rlike '[^-+ 0-9]', null, try_cast(config['min.insync.replicas'] as int))"
)
"""SQL: the number, or null for anything else, such as 2.0 or 1e1, which not all engines take for one."""
_EVER: Final = "timestamp '0001-01-01'"
_FOREVER: Final = "timestamp '9999-12-31'"


def config_intervals(events: DataFrame, spans: DataFrame) -> DataFrame:
    """Return `schemas.CONFIG_INTERVALS`."""
    names = ", ".join(f"'{kind}'" for kind in _KINDS)
    scope = "case when kind like 'topic%' then 'topic' when broker is null then 'default' else 'broker' end as scope"
    rows = events.where(f"kind in ({names})").selectExpr("*", scope)
    rows = rows.selectExpr(
        "*", "case scope when 'topic' then topic when 'broker' then string(broker) else '' end as name"
    )
    rows = add_ends(place_records(rows, spans), _KEY).where(_SET)
    return add_unknown(rows, ("config",), spans).select(*CONFIG_INTERVALS.schema.fieldNames())


def min_isr_steps(configs: DataFrame) -> DataFrame:
    """Return the `min.insync.replicas` of each `scope` and `name` that ever set it, in steps without a gap.

    The steps cover all time from `began` to `ended`. `value` is null while it was not set."""
    told = f"struct(began, if(is_last, {_FOREVER}, ended) as ended, {MIN_ISR} as value) as told"
    values = configs.where("is_known").selectExpr(*_KEY, told)
    return steps(values.where("told.value is not null"), _KEY)


def static_min_isr_steps(events: DataFrame, spans: DataFrame) -> DataFrame:
    """Return the `min.insync.replicas` of brokers' own files, by `cluster_id` and `broker`, in steps as
    `min_isr_steps`.

    A broker reads its file at its start. So its answer holds from the beginning of that registration, even if another
    controller saw the registration first, until the next registration under which it answered."""
    kinds = f"kind in ('{Kind.BROKER}', '{Kind.BROKER_STATIC_CONFIG}') and broker_epoch is not null"
    rows = place_records(events.where(kinds), spans)
    said = f"if(kind = '{Kind.BROKER_STATIC_CONFIG}', {MIN_ISR}, null)"
    registrations = rows.groupBy("cluster_id", "broker", "broker_epoch").agg(
        f.min("at").alias("began"), f.max(f.expr(said)).alias("value")
    )
    until = "lead(began) over (partition by cluster_id, broker order by broker_epoch)"
    told = f"struct(began, coalesce({until}, {_FOREVER}) as ended, value) as told"
    answered = registrations.where("value is not null").selectExpr("cluster_id", "broker", told)
    return steps(answered, ("cluster_id", "broker"))


def steps(told: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return steps without a gap, over all time, from the few values of each `key` (`told`: began, ended, value).

    `value` is null between the given values."""
    values = told.groupBy(*key).agg(f.collect_list("told").alias("told"))
    bounds = f"array({_EVER}), transform(told, v -> v.began), transform(told, v -> v.ended), array({_FOREVER})"
    values = values.selectExpr("*", f"array_sort(array_distinct(concat({bounds}))) as times")
    value = "array_max(filter(told, v -> v.began <= get(times, i) and get(times, i) < v.ended)).value"
    step = f"struct(get(times, i) as began, get(times, i + 1) as ended, {value} as value)"
    return values.selectExpr(*key, f"inline(transform(sequence(0, size(times) - 2), i -> {step}))")
