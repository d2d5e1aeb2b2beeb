"""`kontroller history changes`: the changes of a topic, and who asked for them."""

import gzip
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from kontroller.command_line import main
from kontroller.history.reports.period import is_moment
from kontroller.history.topic_changes import list_changes
from tests.unit.watching.lines import alive, lead, line, snapshot

ALICE, BOB = "User:alice", "User:bob"


def request(seq: int, who: str, api: str, outcome: str, *resources: Any, **fields: Any) -> bytes:
    told = {
        "api": api,
        "outcome": outcome,
        "principal": who,
        "address": "10.0.0.1",
        "resources": [*resources],
        **fields,
    }
    return line(seq, seq, "request", cause="made_up", request=told)


def topic(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "topic", "name": name, **fields}


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    folder = tmp_path / "controller-1" / "journal"
    folder.mkdir(parents=True)
    lines = [
        *snapshot(0, 0, {"topic": "orders", "partition": 0, "delta": {"leader": 1, "isr": [1]}}),
        request(
            3, ALICE, "CreatePartitions", "done",
            topic("orders", before={"partitions": 1}, after={"partitions": 3}), topic("others"),
        ),
        lead(4, 4, 2, topic="orders").replace(b'"cause"', b'"principal":"User:alice","address":"10.0.0.1","cause"'),
        request(5, BOB, "DeleteTopics", "refused", topic("orders", error="TOPIC_AUTHORIZATION_FAILED")),
        lead(6, 6, 3, topic="orders"),
        lead(7, 7, 3, topic="others"),
        request(8, BOB, "DeleteTopics", "refused", {"type": "group", "name": "orders"}, "nonsense"),
        alive(9, 9),
    ]  # fmt: skip
    (folder / f"{1:020}-{0:020}.jsonl").write_bytes(b"".join(each + b"\n" for each in lines))
    return tmp_path


def test_the_changes_of_a_topic_name_who_asked_for_them(journal: Path) -> None:
    assert [(each.principal, each.what, each.cause) for each in list_changes("orders", journal, problems=[])] == [
        (ALICE, "CreatePartitions done: before partitions=1, after partitions=3", "made_up"),
        (ALICE, "partition 0: leader=2 isr=1", "broker_failed"),
        (BOB, "DeleteTopics TOPIC_AUTHORIZATION_FAILED", "made_up"),
        ("", "partition 0: leader=3 isr=1", "broker_failed"),
    ]


def test_the_command_prints_them_for_people_and_programs(journal: Path) -> None:
    asked = ["history", "changes", "--topic", "orders", "--journal", str(journal)]
    shown = CliRunner().invoke(main, asked)
    assert shown.exit_code == 0
    heads, first, *_ = shown.stdout.splitlines()
    assert heads.split() == ["TIME", "PRINCIPAL", "ADDRESS", "WHAT", "CAUSE"]
    assert first.split()[2:5] == [ALICE, "10.0.0.1", "CreatePartitions"]
    told = json.loads(CliRunner().invoke(main, [*asked, "-o", "json"]).stdout)
    assert [each["principal"] for each in told] == [ALICE, ALICE, BOB, ""]


def stamp(journal: Path, stamp_us: int) -> None:
    """Write a journal of one change with this stamp, and one of 2023 before it."""
    delta = {"leader": 3, "isr": [1]}
    stamped = line(4, 0, "leadership", topic="orders", partition=0, delta=delta, event_time_us=stamp_us)
    lines = [*snapshot(0, 0, {"topic": "orders", "partition": 0}), lead(3, 3, 2, topic="orders"), stamped]
    (journal / f"{1:020}-{0:020}.jsonl").write_bytes(b"".join(each + b"\n" for each in lines))


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_stamp_of_any_year_leaves_every_change_listed(stamp_us: int) -> None:
    with TemporaryDirectory() as folder:
        stamp(Path(folder), stamp_us)
        told = [each.make_json()["time"] for each in list_changes("orders", Path(folder), problems=[])]
    assert [time is None for time in told] == [False, not is_moment(stamp_us)]


def test_a_change_without_a_time_is_printed(tmp_path: Path) -> None:
    stamp(tmp_path, 1_774_860_912_000_000_000)
    shown = CliRunner().invoke(main, ["history", "changes", "--topic", "orders", "--journal", str(tmp_path)])
    assert [each.split()[0] for each in shown.stdout.splitlines()] == ["TIME", "2023-11-14", "-"]


@pytest.mark.parametrize(
    ("more", "told"), [((), "say where the journal is"), (("--journal", "/nowhere"), "/nowhere is not a folder")]
)
def test_a_wrong_command_says_what_to_change(more: tuple[str, ...], told: str) -> None:
    ended = CliRunner().invoke(main, ["history", "changes", "--topic", "orders", *more])
    assert (ended.exit_code, told in ended.output) == (2, True)


def test_compressed_segments_are_read_and_damaged_ones_are_reported(journal: Path) -> None:
    (segment,) = journal.rglob("*.jsonl")
    expected = list(list_changes("orders", journal, problems=[]))
    compressed = segment.with_name(f"{segment.name}.gz")
    compressed.write_bytes(gzip.compress(segment.read_bytes()))
    segment.unlink()
    assert list(list_changes("orders", journal, problems=[])) == expected
    asked = ["history", "changes", "--topic", "orders", "--journal", str(journal), "-o", "json"]
    shown = CliRunner().invoke(main, asked)
    assert (shown.exit_code, len(json.loads(shown.stdout)), shown.stderr) == (0, 4, "")
    at = CliRunner().invoke(main, ["history", "at", "2100-01-01", "--journal", str(journal)])
    assert "the journals end at 2023-11-14 22:13:29 UTC" in at.stderr
    compressed.write_bytes(compressed.read_bytes()[:-20])
    shown = CliRunner().invoke(main, asked)
    assert shown.exit_code == 1
    assert "unreadable segment" in shown.stderr


def test_missing_and_unreadable_records_are_named_and_copies_are_not(journal: Path) -> None:
    (segment,) = journal.rglob("*.jsonl")
    first, *others = segment.read_bytes().splitlines(keepends=True)
    copy = journal / "copy" / segment.name
    copy.parent.mkdir()
    copy.write_bytes(segment.read_bytes())
    problems = list[str]()
    assert len([*list_changes("orders", journal, problems=problems)]) == 4
    assert problems == []

    copy.unlink()
    segment.write_bytes(b"".join([first, *others[:3], b"nonsense\n", *others[5:]]))
    assert len([*list_changes("orders", journal, problems=problems)]) == 2
    unreadable, missing = problems
    assert unreadable.startswith(f"{segment.name}:5: unreadable record")
    assert missing == f"{segment.name}:6: records 4 to 5 of epoch 1 are missing"

    asked = ["history", "changes", "--topic", "orders", "--journal", str(journal)]
    segment.write_bytes(b"".join([first, *others, *[b"nonsense\n"] * 1000]))
    shown = CliRunner().invoke(main, asked)
    assert (shown.exit_code, len(shown.stderr.splitlines())) == (1, 21)
    assert "... and 980 more problems" in shown.stderr
