"""Strings of the output stay strings for every reader of YAML."""

import re

import pytest
import yaml
from typer.testing import CliRunner

from kontroller.cli.administering.output import Format, say
from kontroller.command_line import main
from kontroller.yaml_output import InOneLine, dump_yaml

OF_GO = ["1e3", "12345e7", "98e6", "1.e3", ".5e3", "+1e-3", "089", "0o17", "-0O17", "0X1F", "0B11", "1_0e3", "0b+1"]
OF_YAML_1_1 = [
    "yes",
    "No",
    "on",
    "y",
    "N",
    "012",
    "0x1f",
    "0b11",
    "1_000",
    "1:30",
    "+1",
    ".5",
    "~",
    "null",
    ".inf",
    "=",
]
TIMES = ["2026-01-01", "2026-1-1", "2026-01-01T10:00:00Z"]


@pytest.mark.parametrize("text", [*OF_GO, *OF_YAML_1_1, *TIMES])
def test_a_string_that_a_reader_may_take_for_something_else_is_quoted(text: str) -> None:
    assert dump_yaml({"a": text}) == f"a: '{text}'\n"
    assert dump_yaml({text: 1}) == f"'{text}': 1\n"


@pytest.mark.parametrize("text", ["orders", "1-2", "10.0.0.1", "v1", "1e", "0x", "yeast", "30s", "compact,delete"])
def test_other_strings_stay_plain(text: str) -> None:
    assert dump_yaml({"a": text}) == f"a: {text}\n"


@pytest.mark.parametrize("value", [3, 0.5, 1e20, 1e-7, True, False, None, [1, 2], {"b": [InOneLine([1])]}])
def test_other_values_keep_their_types(value: object) -> None:
    text = dump_yaml({"a": value})
    assert yaml.safe_load(text) == {"a": value}
    assert "'" not in text


def test_an_imported_topic_has_the_labels_and_the_name_of_its_source() -> None:
    metadata = {
        "name": "1e3",
        "labels": {"strimzi.io/cluster": "demo", "commit": "12345e7", "mode": "0o17"},
        "annotations": {"build": "98e6"},
    }
    topic = {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaTopic",
        "metadata": metadata,
        "spec": {"partitions": 3, "replicas": 3},
    }
    result = CliRunner().invoke(main, ["import", "--from", "-"], input=yaml.safe_dump(topic, default_style='"'))
    assert result.exit_code == 0, result.output
    for line in ("name: '1e3'", "commit: '12345e7'", "mode: '0o17'", "build: '98e6'"):
        assert re.search(rf"^ +{line}$", result.stdout, re.MULTILINE), result.stdout


def test_administering_commands_quote_too(capsys: pytest.CaptureFixture[str]) -> None:
    say(Format.YAML, {"topic": "1e3"}, ())
    assert capsys.readouterr().out == "topic: '1e3'\n"
