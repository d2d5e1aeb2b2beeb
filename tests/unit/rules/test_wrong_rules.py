"""Wrong rules end a process at its start, and can be tried before without one."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from controller_core.process.run import run_controller
from controller_core.process.settings import InvalidSettings, load_settings
from controller_core.rules.topic_rules import InvalidRules
from controller_operator.process import operate
from controller_operator.settings import OperatorSettings
from kontroller.command_line import main
from tests.unit.rules.rule_files import THREE_REPLICAS, rule, write_rules


async def test_a_wrong_rule_ends_a_controller_before_it_asks_for_anything(tmp_path: Path) -> None:
    file = write_rules(tmp_path, rule("topic.partitons > 1"))
    given = {"id": 1000, "zookeeper": "127.0.0.1:1", "listen": "PLAINTEXT://127.0.0.1:9090", "topic_rules": file}
    with pytest.raises(
        InvalidSettings, match=r"--topic-rules: .*rules\.yaml:2: rule 1: expression, column 6: undeclared"
    ):
        await run_controller(load_settings(given))


async def test_a_wrong_rule_ends_an_operator_before_it_asks_for_anything(tmp_path: Path) -> None:
    def make_no_watcher(_: Any) -> Any:
        raise AssertionError("nothing may be watched")

    settings = OperatorSettings(all_namespaces=True, topic_rules=write_rules(tmp_path, rule("topic.partitons > 1")))
    with pytest.raises(InvalidRules, match="rule 1: expression, column 6: undeclared"):
        await operate(settings, make_no_watcher)


@pytest.mark.parametrize(
    ("options", "exit_code", "printed"),
    [
        (["--replication-factor", "2"], 1, "refused: use at least 3 replicas"),
        ([], 0, "allowed"),
        (["--namespace", "shop", "--config", "retention.ms=5"], 0, "allowed"),
        (["--config", "retention.ms"], 2, "is not NAME=VALUE"),
    ],
)
def test_rules_are_tried_on_a_topic(tmp_path: Path, options: list[str], exit_code: int, printed: str) -> None:
    file = write_rules(tmp_path, THREE_REPLICAS)
    result = CliRunner().invoke(main, ["check", "rules", str(file), *options])
    assert (result.exit_code, printed in result.output) == (exit_code, True), result.output


def test_a_wrong_rule_is_named_when_it_is_tried(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["check", "rules", str(write_rules(tmp_path, rule("topic.partitions")))])
    assert result.exit_code == 2
    assert "rule 1: expression: it gives INT, and must give BOOL" in result.output
