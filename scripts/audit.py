"""Asks a service of vulnerabilities about everything that the lock files name. Run by `make audit`; it needs the network.

pip-audit does the asking. It takes what the service does not know, or does not answer about, for harmless; here that is
a failure: exit status 0 says that each distribution was looked up and none is known to be vulnerable, 1 that some are,
2 that the question was not answered.
"""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_LOCKS = Path(__file__).resolve().parents[1] / "locks"
_OPTIONS = ("--require-hashes", "--disable-pip", "--format", "json", "--progress-spinner", "off")
_VULNERABLE, _UNANSWERED = 1, 2


class Unanswered(Exception):
    """The service was not reached, or did not say anything about some distributions; the message says which."""


def ask(service: str, locks: Iterable[Path]) -> list[dict[str, Any]]:
    """What pip-audit found out about each distribution. Raises Unanswered."""
    requirements = [word for lock in locks for word in ("--requirement", str(lock))]
    command = [sys.executable, "-m", "pip_audit", "--vulnerability-service", service, *_OPTIONS, *requirements]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except ValueError as error:
        raise Unanswered((done.stderr.strip().splitlines() or ["nothing was printed"])[-1]) from error
    if skipped := [entry["name"] for entry in found if "skip_reason" in entry]:
        raise Unanswered(
            f"it knows nothing of {len(skipped)} of {len(found)} distributions: {', '.join(skipped[:5])} ..."
        )
    return found


def report(found: list[dict[str, Any]]) -> int:
    """Prints what is known to be vulnerable; the exit status."""
    vulnerable = [entry for entry in found if entry["vulns"]]
    for entry in vulnerable:
        for finding in entry["vulns"]:
            fixed = ", ".join(finding["fix_versions"]) or "no version yet"
            print(f"{entry['name']} {entry['version']}: {finding['id']}, fixed in {fixed}")  # noqa: T201
    print(f"{len(found)} distributions looked up, {len(vulnerable)} known to be vulnerable")  # noqa: T201
    return _VULNERABLE if vulnerable else 0


def main(service: str) -> int:
    try:
        # The smallest lock first: a service that is not there is not asked a hundred times.
        ask(service, [_LOCKS / "build.txt"])
        return report(ask(service, sorted(_LOCKS.glob("*.txt"))))
    except Unanswered as error:
        print(f"NOT AUDITED: the service `{service}` cannot be reached or gave no answer: {error}", file=sys.stderr)  # noqa: T201
        return _UNANSWERED


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
