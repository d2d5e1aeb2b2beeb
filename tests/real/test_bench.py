"""The benchmarks, with tiny sizes: both controllers run all scenarios, with their checks.

The operator runs all phases, and writes nothing in idle ones.
"""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from bench.__main__ import app
from bench.operator_scale.__main__ import main as operator_scale
from bench.report.page import write_report
from bench.report.result import Result
from bench.scenarios import SCENARIOS
from devcluster.filling.parts import API_SERVER

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(600),
]

PARTITIONS = 300


def test_both_controllers_play_every_scenario_and_what_came_of_it_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    options = ["--partitions", str(PARTITIONS), "--runs", "1", "--no-writes", "--output", str(file)]
    ended = CliRunner().invoke(app, options)
    assert ended.exit_code == 0, ended.output
    content = json.loads(file.read_text())
    assert content["failures"] == []
    result = Result.load(file)
    played = {
        kind: [(run.scenario, run.variant) for run in result.runs if run.controller == kind]
        for kind in ("kafka", "kontroller")
    }
    assert played["kafka"] == played["kontroller"]
    assert len(played["kafka"]) == len(SCENARIOS) + len(["brokers come back", "from death and from shutdown"])
    for run in content["runs"]:
        assert run["seconds"] > 0
        assert run["entries"]["UPDATE_METADATA"] > 0
        assert run["rss_mb"] > 0
    assert {row.request for row in result.latency} == {"alter_partition", "metadata"}
    assert all(row.count > 0 for row in result.latency)
    assert all(path.is_file() for path in write_report([file], tmp_path))


@pytest.mark.real(*API_SERVER)
def test_the_operator_is_measured_in_all_phases(tmp_path: Path) -> None:
    file = tmp_path / "operator_scale.json"
    operator = typer.Typer()
    operator.command()(operator_scale)
    ended = CliRunner().invoke(operator, ["--topics", "5", "--outage", "1", "--output", str(file)])
    assert ended.exit_code == 0, ended.output
    phases = {phase["name"]: phase for phase in json.loads(file.read_text())["phases"]}
    assert phases["from nothing until all are Ready"]["kubernetes_writes"]["PATCH kafkatopics/status"] >= 2 * 5
    assert phases["resync with changes"]["changes_s"]
    assert phases["resync"]["kubernetes_writes"] == {}
    assert phases["outage of ZooKeeper"]["memory_mb"] > 0
