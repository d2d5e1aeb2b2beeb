"""A release has one version everywhere, and the workflows call commands that exist."""

import re
from pathlib import Path
from typing import Final

import pytest
import yaml

from scripts.release import find_mismatches

ROOT: Final = Path(__file__).parents[3]
WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS: Final = set(re.findall(r"^([a-z0-9-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_every_file_has_the_version_of_the_distribution() -> None:
    assert find_mismatches(None) == []


def test_a_tag_of_another_version_names_each_file_to_change() -> None:
    found = find_mismatches("v0.2.0")
    assert len(found) == 5
    assert found[0] == "pyproject.toml has version 0.1.0, not 0.2.0"


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_targets_and_scripts_that_exist(workflow: Path) -> None:
    jobs = yaml.safe_load(workflow.read_text())["jobs"]
    commands = "\n".join(step.get("run", "") for job in jobs.values() for step in job["steps"])
    assert set(re.findall(r"\bmake ([a-z0-9-]+)", commands)) <= TARGETS
    assert [path for path in re.findall(r"(?:\.ci|scripts|charts|images)/[\w/-]+", commands) if not leads(path)] == []


def test_a_job_of_the_release_can_read_the_repository_and_sign_in_the_registry() -> None:
    (workflow,) = (path for path in WORKFLOWS if path.stem == "release")
    for job in yaml.safe_load(workflow.read_text())["jobs"].values():
        commands = "\n".join(step.get("run", "") for step in job["steps"])
        assert job["permissions"]["contents"] in ("read", "write"), "what a job does not list it does not have"
        if re.search(r"cosign (sign|attest) ", commands):
            assert "docker login" in commands, "cosign does not know the login of helm"
            assert not re.search(r"\$(REGISTRY\b|\{REGISTRY\})", commands), "an owner may have capitals"


def leads(path: str) -> bool:
    return (ROOT / path.removesuffix("/")).exists()
