"""The commits that passed `.ci/run`, and the changes since."""

import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import Final

from devcluster.building.cache import cache_folder

_PASSED: Final = "ci-passed"
"""A file in the cache with the last commit that passed on this machine, for other tools to read."""
_ALL_PASSED: Final = "ci-passed-before"
"""A file in the cache with all commits that passed on this machine, one in each line."""


class NoBaseError(Exception):
    """There is no commit to compare with. The message says what to do."""


def head() -> str:
    """Return the hash of the commit that is checked out."""
    return _git("rev-parse", "HEAD").strip()


def record_passed(commit: str) -> None:
    """Record in the cache that `.ci/run` passed for a commit."""
    with (cache_folder() / _ALL_PASSED).open("a") as passed:
        passed.write(f"{commit}\n")
    (cache_folder() / _PASSED).write_text(f"{commit}\n")


def find_base(green: str, given: str = "") -> str:
    """Return the commit to compare with: `given`, or the nearest ancestor of HEAD for which `.ci/run` passed.

    The ledger names one such commit, `green`, and the cache of this machine may have others. HEAD itself does not
    count, so a second run on one commit runs the same cases. Raises NoBaseError.
    """
    if given:
        return _git("rev-parse", "--verify", f"{given}^{{commit}}").strip()
    passed = cache_folder() / _ALL_PASSED
    known = {green, *(passed.read_text().split() if passed.exists() else ())}
    return nearest(_git("rev-list", "HEAD").split()[1:], known)


def nearest(ancestors: Collection[str], passed: Collection[str]) -> str:
    """Return the first of the ancestors, newest first, that has passed. Raises NoBaseError."""
    found = next((commit for commit in ancestors if commit in passed), None)
    if found is None:
        raise NoBaseError(
            "docs/ledger.json and the cache have no ancestor of HEAD that passed .ci/run: name one with BASE="
        )
    return found


def last_change(path: Path) -> str:
    """Return the last commit that changed a file, or HEAD if none has."""
    return _git("log", "-1", "--format=%H", "--", str(path)).strip() or head()


def list_tracked_paths(pattern: str) -> list[str]:
    """Return the tracked files that match a pattern."""
    return _git("ls-files", pattern).splitlines()


def list_changed_paths(base: str) -> list[str]:
    """Return the files that differ from a commit: changed, added, removed and untracked files."""
    changed = _git("diff", "--name-only", "--no-renames", base).splitlines()
    untracked = _git("ls-files", "--others", "--exclude-standard").splitlines()
    return sorted({*changed, *untracked})


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    except subprocess.CalledProcessError as error:
        raise NoBaseError(f"{' '.join(command)}: {error.stderr.strip()}") from error


def project_folder() -> Path:
    """Return the top folder of the checkout."""
    return Path(_git("rev-parse", "--show-toplevel").strip())
