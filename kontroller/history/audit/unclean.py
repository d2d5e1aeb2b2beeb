"""Unclean elections that nothing allowed. Each may lose acknowledged records.

An election may be allowed by the topic, otherwise by the configuration of the controller's broker id, otherwise by the
default of all brokers, otherwise by the controller's own setting, which the first record of its term states, otherwise
by brokers' files. Users may request one at any time (`elect_leaders`).
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from kontroller.history.audit.invariants import RECORD, Invariant, violations

NAME: Final = "unclean.leader.election.enable"

INVARIANTS: Final = (
    Invariant(
        id="UncleanIsAllowed",
        broken="NOT coalesce(of_topic = 'true', of_broker = 'true', of_default = 'true', of_setting = 'true', "
        "of_file = 'true', by_default)",
        detail=f"broker {{leader}} was elected uncleanly, and nothing allows it: {NAME} of the topic {{of_topic}}, of "
        "the controller's id {of_broker}, default of all brokers {of_default}, the controller's own setting {of_setting}, "
        "brokers' files {of_file}",
        evidence=("topic_record", "broker_record", "default_record", "setting_record", "file_record"),
        broker="leader",
    ),
)


def find_forbidden_elections(known_events: DataFrame, *, unclean_by_default: bool = False) -> DataFrame:
    """Return unclean elections that nothing allowed.

    `unclean_by_default`: the controllers' setting if their first records do not state it. Inferred elections are not
    judged, because a recorder does not see who asked for them."""
    elections = (
        known_events.where("unclean AND NOT snapshot AND NOT inferred AND origin <> 'logs'")
        .where("kind = 'leadership' AND cause <> 'elect_leaders'")
        .selectExpr(*_OF_A_SPAN, "seq", *_OF_AN_ELECTION, f"{RECORD} AS record", _ASKED)
        .alias("elections")
    )
    configs = (
        known_events.where(f"kind RLIKE '^(topic|broker)_config' OR kind = 'controller_elected' OR {_TELLS_FILE}")
        .selectExpr(*_OF_A_SPAN, "seq", f"{RECORD} AS config_record", f"{_SCOPE} AS scope", f"{_OF} AS name", _SETTING)
        .alias("configs")
    )
    same = " AND ".join(f"elections.{name} = configs.{name}" for name in (*_OF_A_TERM, "scope", "name"))
    is_before = f"{same} AND configs.seq < elections.seq AND (configs.scope = 'setting' OR {_SAME_SPAN})"
    judged = elections.join(configs, f.expr(is_before), "left")
    rows = judged.groupBy(*(f"elections.{name}" for name in (*_OF_A_SPAN, "seq", *_OF_AN_ELECTION, "record"))).agg(
        *(column for scope in _SCOPES for column in _latest(scope))
    )
    return violations(rows.withColumn("by_default", f.lit(unclean_by_default)), INVARIANTS)


_OF_A_TERM: Final = ("cluster_id", "controller_epoch")
_OF_A_SPAN: Final = (*_OF_A_TERM, "span_seq")
_OF_AN_ELECTION: Final = ("topic", "partition", "leader", "inferred")
_TELLS_FILE: Final = f"(kind = 'broker_static_config' AND config['{NAME}'] IS NOT NULL)"
_SAME_SPAN: Final = "elections.span_seq = configs.span_seq"
_SCOPES: Final = ("topic", "broker", "default", "setting", "file")
_NAMES: Final = {
    "topic": "topic",
    "broker": "CAST(controller_id AS STRING)",
    "default": "''",
    "setting": "''",
    "file": "''",
}
_PAIRS: Final = ", ".join(f"named_struct('scope', '{scope}', 'name', {name})" for scope, name in _NAMES.items())
_ASKED: Final = f"inline(array({_PAIRS}))"
_SCOPE: Final = (
    "CASE WHEN kind LIKE 'topic%' THEN 'topic' WHEN kind LIKE 'controller%' THEN 'setting' "
    "WHEN kind = 'broker_static_config' THEN 'file' WHEN broker IS NULL THEN 'default' ELSE 'broker' END"
)
_OF: Final = (
    "CASE WHEN kind LIKE 'topic%' THEN topic WHEN kind LIKE 'broker_config%' THEN coalesce(CAST(broker AS STRING), '') "
    "ELSE '' END"
)
_SETTING: Final = f"IF(kind LIKE '%removed', NULL, lower(config['{NAME}'])) AS setting"


def _latest(scope: str) -> tuple[Column, Column]:
    """Return the last configuration before the election, and its record."""
    seq = f.when(f.col("configs.scope") == scope, f.col("configs.seq"))
    return f.max_by("setting", seq).alias(f"of_{scope}"), f.max_by("config_record", seq).alias(f"{scope}_record")
