"""Checks all distributions of the lock files for known vulnerabilities. Run by `make audit`; it needs the network.

pip-audit does the lookups. It treats an unknown distribution as harmless; here that is a failure. Exit status 0: all
distributions were looked up, and none is known to be vulnerable. 1: some are. 2: the lookup failed.
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
    """The service was unreachable, or does not know some distributions, which the message names."""


def ask(service: str, locks: Iterable[Path]) -> list[dict[str, Any]]:
    """Return pip-audit's result for each distribution. Raises Unanswered."""
    requirements = [word for lock in locks for word in ("--requirement", str(lock))]
    command = [sys.executable, "-m", "pip_audit", "--vulnerability-service", service, *_OPTIONS, *requirements]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except ValueError as error:
        raise Unanswered((done.stderr.strip().splitlines() or ["nothing was printed"])[-1]) from error
    if skipped := [entry["name"] for entry in found if "skip_reason" in entry]:
        raise Unanswered(f"it does not know {len(skipped)} of {len(found)} distributions: {', '.join(skipped[:5])} ...")
    return found


def report(found: list[dict[str, Any]]) -> int:
    """Print the vulnerable distributions, and return the exit status."""
    vulnerable = [entry for entry in found if entry["vulns"]]
    for entry in vulnerable:
        for finding in entry["vulns"]:
            fixed = ", ".join(finding["fix_versions"]) or "no version yet"
            print(f"{entry['name']} {entry['version']}: {finding['id']}, fixed in {fixed}")  # noqa: T201
    print(f"{len(found)} distributions looked up, {len(vulnerable)} known to be vulnerable")  # noqa: T201
    return _VULNERABLE if vulnerable else 0


def main(service: str) -> int:
    try:
        # The smallest lock first: an unreachable service is then noticed after a few requests.
        ask(service, [_LOCKS / "build.txt"])
        return report(ask(service, sorted(_LOCKS.glob("*.txt"))))
    except Unanswered as error:
        print(f"NOT AUDITED: the service `{service}` is unreachable or gave no answer: {error}", file=sys.stderr)  # noqa: T201
        return _UNANSWERED


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
