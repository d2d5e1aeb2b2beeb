"""Invariants between journals of controllers with the same epoch, which must agree.

The events have one account of each epoch, so these invariants use the raw records of all journals. Copies and parts of
one journal are one account. Recorders are left out, because they state the same later and in another form. Only a
record's own fields are compared, because a journal may have lost the others.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from kontroller.history.audit.invariants import RECORD, Invariant, violations
from kontroller.history.audit.lives import add_lives
from kontroller.history.transforms.accounts.agreement import accounts
from kontroller.history.transforms.continuity.neighbours import EPOCH
from kontroller.history.transforms.lines import CONTROLLER

STATES: Final = (
    Invariant(
        id="JournalsAgreeOnStates",
        broken="account <> other.account AND (leader <> other.leader OR leader_epoch <> other.leader_epoch "
        "OR array_sort(isr) <> array_sort(other.isr))",
        detail="partition epoch {partition_epoch} says leader {leader}, ISR {isr}, leader epoch {leader_epoch} in one "
        "journal of this controller epoch, and leader {other.leader}, ISR {other.isr}, leader epoch "
        "{other.leader_epoch} in another: two controllers had the epoch, or ZooKeeper lost what it had",
        evidence=("other.record",),
    ),
)

LEADERS: Final = (
    Invariant(
        id="JournalsAgreeOnLeaders",
        broken="account <> other.account AND leader <> other.leader",
        detail="brokers {other.leader} and {leader} both lead in leader epoch {leader_epoch}, each by another journal "
        "of this controller epoch: both may have taken messages",
        evidence=("other.record",),
        broker="leader",
    ),
)

_THING: Final = (*EPOCH, "topic", "life", "partition")


def find_contradictions(recorded: DataFrame) -> DataFrame:
    """Return violations between accounts of one controller epoch, each at the later record."""
    told = _leaderships(recorded)
    states = told.where("partition_epoch >= 0").groupBy(*_THING, "partition_epoch", "account").agg(
        f.max("leader").alias("leader"), f.max("leader_epoch").alias("leader_epoch"), f.max("isr").alias("isr"),
        f.min("record").alias("record"),
    )  # fmt: skip
    leaders = told.where("leader >= 0 AND leader_epoch IS NOT NULL")
    leaders = leaders.groupBy(*_THING, "leader_epoch", "account", "leader").agg(f.min("record").alias("record"))
    return violations(_add_first_statement(states, "partition_epoch"), STATES).unionByName(
        violations(_add_first_statement(leaders, "leader_epoch"), LEADERS)
    )


def _leaderships(recorded: DataFrame) -> DataFrame:
    """Return the leaderships of epochs with several controllers' accounts, each with the life of its topic."""
    own = recorded.where(f.col("origin") == CONTROLLER)
    names = f.broadcast(accounts(own).select(*EPOCH, "journal", "account"))
    told = own.where("kind IN ('leadership', 'topic')").join(names, [*EPOCH, "journal"])
    told = told.withColumn("record", f.expr(RECORD))
    return add_lives(told, (*EPOCH, "account", "topic"), ("seq",))


def _add_first_statement(statements: DataFrame, version: str) -> DataFrame:
    """Add the first statement about the same version to each statement (`other`)."""
    of_the_version = Window.partitionBy(*_THING, version).orderBy("record", "account")
    said = f.struct("account", "leader", "record", *({"isr", "leader_epoch"} & set(statements.columns)))
    return statements.withColumns({"other": f.first(said).over(of_the_version), "inferred": f.lit(False)})
