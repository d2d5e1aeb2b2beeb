"""A journal is opened by the settings, and metrics show its state."""

import sys
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from controller_core.process.journal import MissingLibrary, close_journals, open_journal, open_topic_journal
from controller_core.process.settings import load_settings
from tests.unit.journal.test_writer import snapshot
from tests.unit.process.test_settings import REQUIRED

DESCRIPTION = (Path(__file__).resolve().parents[3] / "docs" / "journal.md").read_text()
TO_NOWHERE = ("controller-journal", "127.0.0.1:1")


async def test_every_metric_of_both_journals_is_described(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    directory = open_journal(tmp_path, load_settings(REQUIRED), registry)
    topic = open_topic_journal(*TO_NOWHERE, registry)
    directory.append(snapshot(1))
    await close_journals([directory, topic])
    names = {metric.name for metric in registry.collect()}
    of_topic = {name for name in names if name.startswith("kontroller_journal_topic_")}
    assert {name.replace("_topic", "") for name in of_topic} == names - of_topic
    assert registry.get_sample_value("kontroller_journal_records_written_total") == 3
    assert registry.get_sample_value("kontroller_journal_topic_records_written_total") == 0
    for name in names - of_topic:
        assert name.removeprefix("kontroller_journal_") in DESCRIPTION
    assert "kontroller_journal_topic_" in DESCRIPTION


def test_a_topic_without_the_library_for_it_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    monkeypatch.delitem(sys.modules, "controller_core.journal.topic", raising=False)
    with pytest.raises(MissingLibrary, match=r"pip install '\.\[journal-topic\]'"):
        open_topic_journal(*TO_NOWHERE, CollectorRegistry())
