"""The alarms of a watch over short histories. They do not depend on the batches, nor on records that come twice."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kontroller.history.alarms.records import Alarm, Rules, Seen, Topic, Trouble
from kontroller.history.alarms.watch import Course, Watch
from tests.spark.alarms.scenes import SCENES, START_US, Fields, Said, alive, lead, min_isr, record

RULES = Rules(
    leaderless_after_us=30_000_000,
    under_min_isr_after_us=20_000_000,
    min_isr=1,
    alive_interval_us=20_000_000,
    silent_after_us=60_000_000,
)


def make_seen(fields: Fields) -> Seen:
    wanted = fields.get("config", {}).get("min.insync.replicas")
    isr = fields.get("isr")
    values = {
        **{name: fields[name] for name in Seen._fields if name in fields},
        "at_us": fields["event_time_us"],
        "in_sync": None if isr is None else len(isr),
        "min_isr": None if wanted is None else int(wanted),
        "assigned": len(fields["replicas"]) if "replicas" in fields else None,
    }
    return Seen(**values)


def describe_alarm(alarm: Alarm) -> Said:
    began, at = ((us - START_US) / 1e6 for us in (alarm.began_us, alarm.at_us))
    assert alarm.topic is not None
    assert alarm.partition is not None
    return Said(alarm.topic, alarm.partition, alarm.problem, alarm.state, began, at, *alarm.position)


class Memory:
    """The state that a watch keeps between batches."""

    def __init__(self) -> None:
        self.course = Course()
        self.topics: dict[str, Topic] = {}
        self.troubles: dict[tuple[str, int], Trouble] = {}

    def see(self, batch: Iterable[Fields]) -> list[Said]:
        watch = Watch(rules=RULES, course=self.course, topics=self.topics, troubles=self.troubles)
        records = sorted(map(make_seen, batch), key=lambda one: one.position)
        return [describe_alarm(alarm) for one in records for alarm in watch.see(one)]


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_gives_its_alarms_each_once(name: str) -> None:
    memory = Memory()
    alarms = [alarm for batch in SCENES[name].batches for alarm in memory.see(batch)]
    assert sorted(alarms) == sorted(SCENES[name].alarms)


CHANGES: st.SearchStrategy[tuple[float, dict[str, Any]]] = st.tuples(
    st.sampled_from([0.0, 1.0, 9.0, 10.0, 31.0]),
    st.one_of(
        st.builds(
            lambda leader, isr, partition: {"kind": "led", "leader": leader, "isr": isr, "partition": partition},
            st.sampled_from([-1, 1]),
            st.sampled_from([[1], [1, 2]]),
            st.sampled_from([0, 1]),
        ),
        st.builds(lambda wanted: {"kind": "min_isr", "wanted": wanted}, st.sampled_from([1, 2])),
        st.sampled_from([{"kind": "alive"}, {"kind": "topic_removed"}]),
    ),
)


def history(changes: list[tuple[float, dict[str, Any]]]) -> list[Fields]:
    at, records = 0.0, []
    for seq, (later, change) in enumerate(changes):
        at += later
        match change["kind"]:
            case "led":
                records.append(lead(seq, at, change["leader"], change["isr"], partition=change["partition"]))
            case "min_isr":
                records.append(min_isr(seq, at, change["wanted"]))
            case "alive":
                records.append(alive(seq, at))
            case kind:
                records.append(record(seq, at, kind, topic="t"))
    return records


def expect_alarms(records: list[Fields]) -> list[Said]:
    """Return the expected alarms, from the state after each record of the whole history."""
    states: dict[int, tuple[int, list[int]]] = {}
    open_: dict[int, tuple[str | None, float, int]] = {}
    wanted, alarms = 1, []
    for one in records:
        now, seq = (one["event_time_us"] - START_US) / 1e6, one["seq"]
        if one["kind"] == "leadership":
            states[one["partition"]] = one["leader"], one["isr"]
        elif one["kind"] == "topic_config":
            wanted = int(one["config"]["min.insync.replicas"])
        elif one["kind"] == "topic_removed":
            states, wanted = {}, 1
        for partition in (0, 1):
            leader, isr = states.get(partition, (1, [1, 2]))
            problem = "leaderless" if leader < 0 else "under_min_isr" if len(isr) < wanted else None
            was, began, began_seq = open_.get(partition, (None, 0.0, 0))
            due = began + (30 if was == "leaderless" else 20)
            if was is not None and was != problem and now > due:
                alarms.append(Said("t", partition, was, "raised", began, due, 1, began_seq))
                alarms.append(Said("t", partition, was, "cleared", began, now, 1, seq))
            if was != problem:
                open_[partition] = problem, now, seq
    for partition, (was, began, began_seq) in open_.items():
        due = began + (30 if was == "leaderless" else 20)
        if was is not None and now > due:
            alarms.append(Said("t", partition, was, "raised", began, due, 1, began_seq))
    return alarms


@settings(max_examples=400, deadline=None)
@given(changes=st.lists(CHANGES, min_size=1, max_size=25), data=st.data())
def test_neither_batches_nor_records_that_come_again_change_what_is_said(
    changes: list[tuple[float, dict[str, Any]]], data: st.DataObject
) -> None:
    records = history(changes)
    memory, alarms, done = Memory(), [], 0
    while done < len(records):
        upto = data.draw(st.integers(done + 1, len(records)))
        again = data.draw(st.integers(max(0, done - 5), done))
        alarms += memory.see(records[again:upto])
        done = upto
    assert sorted(alarms) == sorted(expect_alarms(records))
