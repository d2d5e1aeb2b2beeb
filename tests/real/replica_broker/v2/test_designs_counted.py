"""Both designs are measured on tiny clusters: all counts are there, and match each design."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.designs.__main__ import app
from bench.designs.report.result import Result

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

PARTITIONS = 12
"""The broker that dies leads a third."""


def test_both_designs_are_counted_at_the_servers(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    options = ["--partitions", str(PARTITIONS), "--in-topic", "6", "--records", "2000", "--rounds", "1"]
    ended = CliRunner().invoke(app, [*options, "--output", str(file)])
    assert ended.exit_code == 0, ended.output
    result = Result.model_validate(json.loads(file.read_text()))
    assert result.failures == ()
    for scenario, leaders in (("creation", PARTITIONS), ("death", PARTITIONS // 3), ("return", 0)):
        found = result.find_counts(scenario, PARTITIONS)  # type: ignore[arg-type]  # of a tuple of literals
        assert {design: row.leaders for design, row in found.items()} == {"v2": leaders, "v3": leaders}
        assert found["v2"].messages_sent == 0
        assert found["v3"].messages["UpdateMetadata"] > 0
        assert found["v2"].requests > found["v3"].requests
    v2, v3 = result.find_counts("death", PARTITIONS)["v2"], result.find_counts("death", PARTITIONS)["v3"]
    assert v2.written["create leader"] == PARTITIONS // 3
    assert v3.written["set data state"] == PARTITIONS
    assert {row.broker for row in result.throughput} == {"stock", "python"}
