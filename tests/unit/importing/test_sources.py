"""Files of each tool, as people write them, become the objects and the report beside them in `files`.

After an intended change of the output, write the expected files again: `python -m tests.unit.importing.test_sources`."""

from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import yaml
from pydantic import BaseModel
from typer.testing import CliRunner

from controller_operator.resources import KafkaTopic, RebalancePlan
from kontroller.command_line import main

FILES: Final = Path(__file__).with_name("files")
KINDS: Final[dict[str, type[BaseModel]]] = {"KafkaTopic": KafkaTopic, "RebalancePlan": RebalancePlan}


class Case(NamedTuple):
    """Files of one tool, and the command's other arguments."""

    expected: str
    files: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    exit_code: int = 0


CASES: Final = (
    Case("strimzi/topics", ("strimzi/topics.yaml",)),
    Case("strimzi/faults", ("strimzi/faults.yaml",), exit_code=1),
    Case("strimzi/rebalances", ("strimzi/rebalances.yaml",)),
    Case("strimzi/rebalance_faults", ("strimzi/rebalance_faults.yaml",), exit_code=1),
    Case("koperator/topics", ("koperator/topics.yaml",)),
    Case("confluent/topics", ("confluent/topics.yaml",)),
    Case(
        "jikkou/topics",
        ("jikkou/topics.yaml", "jikkou/common.yaml"),
        ("--cluster", "main", "--default-replication-factor", "1"),
        exit_code=1,
    ),
    Case("topicctl/topics", ("topicctl/topics.yaml",), ("--namespace", "kafka"), exit_code=1),
    Case("julie_ops/topics", ("julie_ops/descriptor.yaml", "julie_ops/plans.yaml"), ("--cluster", "main"), exit_code=1),
    Case(
        "terraform/topics",
        ("terraform/terraform.tfstate",),
        ("--cluster", "main", "--default-replication-factor", "3"),
    ),
)


def run_import(case: Case) -> tuple[int, str, str]:
    """Run the command in the folder of the files; returns its exit code, output and report."""
    sources = [argument for name in case.files for argument in ("--from", name)]
    with chdir(FILES):
        result = CliRunner().invoke(main, ["import", *sources, *case.arguments])
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.expected)
def test_files_of_a_tool_become_objects_and_a_report(case: Case) -> None:
    exit_code, output, report = run_import(case)
    expected = FILES / f"{case.expected}.expected"
    assert output == expected.with_suffix(".expected.yaml").read_text()
    assert report == expected.with_suffix(".expected.txt").read_text()
    assert exit_code == case.exit_code


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.expected)
def test_each_object_of_the_output_fits_the_schema(case: Case) -> None:
    for each in list_objects(run_import(case)[1]):
        kind = KINDS[str(each["kind"])]
        kind.model_validate({**each, "metadata": {"namespace": "any", **each["metadata"]}})


def test_secrets_of_a_file_do_not_come_into_the_output() -> None:
    told = "".join(text for case in CASES for text in run_import(case)[1:])
    assert "aHVudGVyMg" not in told
    assert "hunter2" not in told


def list_objects(output: str) -> Iterator[dict[str, dict[str, object]]]:
    return (each for each in yaml.safe_load_all(output) if each)


if __name__ == "__main__":
    for each_case in CASES:
        _, written, told = run_import(each_case)
        for text, suffix in ((written, "yaml"), (told, "txt")):
            (FILES / f"{each_case.expected}.expected.{suffix}").write_text(text)
