"""The examples of docs/cli.md and the scripts of examples/library do what they say."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from kontroller.cli.administering.examples import EXAMPLES, FILES
from tests.real.conformance.client.commands import kontroller_of
from tests.real.conformance.clusters import ConformanceCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

SCRIPTS: Final = Path(__file__).parents[4] / "examples" / "library"


def test_every_example_does_what_the_page_says(cluster: ConformanceCluster, tmp_path: Path) -> None:
    kontroller = kontroller_of(cluster, cluster.bootstrap)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    for example in EXAMPLES:
        arguments = [str(tmp_path / each) if each in FILES else each for each in shlex.split(example.arguments)]
        if example.command == "elect verify":
            cluster.wait_until_served("orders")
            cluster.wait_until_everybody_knows("orders")
        ended = kontroller.run(*arguments)
        assert ended.code == example.exit_code, (example, ended)
        if example.command == "topics create":
            cluster.wait_until_served(arguments[3], 2)
            cluster.wait_until_everybody_knows(arguments[3], 1)
    cluster.wait_until_gone("/brokers/topics/orders", "/brokers/topics/invoices")


def test_the_scripts_of_the_examples_move_a_partition_and_describe_it(
    cluster: ConformanceCluster, name: str, tmp_path: Path
) -> None:
    cluster.serve_topic(name, [[1, 2]])
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": name, "partition": 0, "replicas": [3, 2]}]}))
    moved = run_script("move_partitions.py", cluster.bootstrap, str(plan))
    assert (moved.returncode, moved.stdout) == (0, "all partitions are on their brokers\n"), moved.stderr
    cluster.wait_until_everybody_knows(name)
    described = run_script("describe_topics.py", cluster.bootstrap)
    assert f"{name} (1 partitions)\n  {name}-0: leader 3, in sync" in described.stdout, described.stderr


def run_script(script: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(SCRIPTS / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
