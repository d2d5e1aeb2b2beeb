"""An audit that was not answered is no good news: it fails, and says so."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from scripts import audit

Answer = Callable[[str, str], None]
LOOKED_UP = {"name": "safe", "version": "1", "vulns": []}
VULNERABLE = {"name": "bad", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"], "aliases": []}]}
SKIPPED = {"name": "unknown", "skip_reason": "Dependency not found"}


@pytest.fixture
def service_answers(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Set the output of pip-audit."""

    def answers(stdout: str, stderr: str = "") -> None:
        def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
            return subprocess.CompletedProcess(command, 0, stdout, stderr)

        monkeypatch.setattr(subprocess, "run", run)

    return answers


def make_report(*dependencies: dict[str, Any]) -> str:
    return json.dumps({"dependencies": dependencies, "fixes": []})


def test_where_all_was_looked_up_and_nothing_is_known_it_succeeds(
    service_answers: Answer, capsys: pytest.CaptureFixture[str]
) -> None:
    service_answers(make_report(LOOKED_UP), "")
    assert audit.main("pypi") == 0
    assert capsys.readouterr().out == "1 distributions looked up, 0 known to be vulnerable\n"


def test_what_is_vulnerable_is_named_with_the_version_that_is_not(
    service_answers: Answer, capsys: pytest.CaptureFixture[str]
) -> None:
    service_answers(make_report(LOOKED_UP, VULNERABLE), "")
    assert audit.main("pypi") == 1
    assert "bad 2: PYSEC-1, fixed in 3\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("stdout", "stderr", "why"),
    [
        (make_report(LOOKED_UP, SKIPPED), "", "it does not know 1 of 2 distributions: unknown"),
        ("", "Traceback\nConnectionError: no such host\n", "ConnectionError: no such host"),
        ("", "", "nothing was printed"),
    ],
)
def test_a_service_that_is_not_there_or_knows_less_is_a_failure_that_is_said(
    service_answers: Answer, capsys: pytest.CaptureFixture[str], stdout: str, stderr: str, why: str
) -> None:
    service_answers(stdout, stderr)
    assert audit.main("osv") == 2
    printed = capsys.readouterr().err
    assert printed.startswith("NOT AUDITED: the service `osv`")
    assert why in printed
