"""The examples of docs/cli.md, one after the other, as somebody types them."""

import shlex
from pathlib import Path

import pytest

from kontroller.cli.administering.examples import EXAMPLES, FILES
from tests.real.conformance.client.commands import kontroller_of
from tests.real.conformance.clusters import ConformanceCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


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
