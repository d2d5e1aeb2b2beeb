"""Checks everything that ships or builds for known vulnerabilities. Run by `make audit`.

Checked are the distributions of the lock files, and the jars and Debian packages of the lists of parts (`sbom.py`): those
of images/, or the complete ones of built images that are named. The vulnerabilities come from OSV's databases, which are
kept in the cache. Without the network those of the last time are used, and the output says how old they are.

Exit status 0: nothing known to be vulnerable. 1: something is. 2: a database is missing.
"""

import json
import re
import sys
import time
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.error import URLError
from urllib.parse import parse_qs, unquote
from urllib.request import urlopen

from devcluster.building.cache import cache_folder
from scripts.package_versions import ORDERS

ROOT: Final = Path(__file__).resolve().parents[1]
_SOURCE: Final = "https://osv-vulnerabilities.storage.googleapis.com/{}/all.zip"
_TIMEOUT_S: Final = 60
_MOST_BYTES: Final = 2 << 30
_FRESH_S: Final = 24 * 3600.0
_PIN: Final = re.compile(r"^([a-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
_PURL: Final = re.compile(r"pkg:(maven|deb|pypi)/([^@?]+)@([^?]+)(?:\?(.*))?")
_VULNERABLE, _UNANSWERED = 1, 2
ACCEPTED: Final = ROOT / "scripts" / "accepted-vulnerabilities.txt"
"""Lines `ID PACKAGE REASON` of vulnerabilities that are known and do not matter here."""


class Unanswered(Exception):
    """A database is not in the cache, and cannot be fetched."""


class Package(NamedTuple):
    """A package, by OSV's names. `ecosystem`: for Debian without its release."""

    ecosystem: str
    name: str
    version: str


class Finding(NamedTuple):
    """A known vulnerability of a package. `fixed`: versions without it."""

    package: Package
    id: str
    fixed: tuple[str, ...]


def read_lock(lock: Path) -> Iterator[Package]:
    """Yield the distributions of a lock file."""
    for name, version in _PIN.findall(lock.read_text()):
        yield Package("PyPI", _normalize(name), version)


def read_parts(document: dict[str, Any]) -> Iterator[Package]:
    """Yield the packages of a list of parts in CycloneDX. Debian's are named by their source packages."""
    for part in document.get("components", ()):
        match = _PURL.fullmatch(part.get("purl", ""))
        if match is None:
            continue
        kind, name, version, qualifiers = match.groups()
        name, version, more = unquote(name), unquote(version), parse_qs(qualifiers or "")
        if kind == "maven":
            yield Package("Maven", name.replace("/", ":"), version)
        elif kind == "deb":
            source, _, source_version = more.get("upstream", [name.rpartition("/")[2]])[0].partition("@")
            yield Package("Debian", source, source_version or version)
        else:
            yield Package("PyPI", _normalize(name), version)


def fetch_database(ecosystem: str, *, now_s: float) -> tuple[Path, float]:
    """Return the database of an ecosystem, and its age in seconds. An old one serves if no newer one can be fetched.

    Raises `Unanswered`."""
    path = cache_folder() / "vulnerabilities" / f"{ecosystem}.zip"
    age_s = now_s - path.stat().st_mtime if path.exists() else None
    if age_s is not None and age_s < _FRESH_S:
        return path, age_s
    try:
        _download(_SOURCE.format(ecosystem), path)
    except (OSError, zipfile.BadZipFile) as error:
        if age_s is None:
            reason = error.reason if isinstance(error, URLError) else error
            raise Unanswered(
                f"{_SOURCE.format(ecosystem)} cannot be fetched ({reason}): connect to the network, or put that "
                f"file at {path}"
            ) from error
        return path, age_s
    return path, 0.0


def _download(url: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    with urlopen(url, timeout=_TIMEOUT_S) as answer, new.open("wb") as file:  # noqa: S310
        while data := answer.read(1 << 20):
            file.write(data)
            if file.tell() > _MOST_BYTES:
                raise OSError(f"it has more than {_MOST_BYTES} bytes")
    with zipfile.ZipFile(new):
        new.replace(path)


def find_vulnerable(database: Path, packages: Iterable[Package]) -> list[Finding]:
    """Return the known vulnerabilities of packages of the database's ecosystem."""
    wanted: dict[tuple[str, str], list[Package]] = {}
    for package in sorted(set(packages)):
        wanted.setdefault((package.ecosystem, package.name), []).append(package)
    found: list[Finding] = []
    with zipfile.ZipFile(database) as file:
        for name in file.namelist():
            record = json.loads(file.read(name))
            if "withdrawn" in record:
                continue
            for affected in record.get("affected", ()):
                place = affected.get("package", {})
                ecosystem = place.get("ecosystem", "").partition(":")[0]
                called = _normalize(place.get("name", "")) if ecosystem == "PyPI" else place.get("name", "")
                if not _is_of_our_debian(place.get("ecosystem", "")):
                    continue
                found += [
                    Finding(package, record["id"], tuple(_list_fixed(affected)))
                    for package in wanted.get((ecosystem, called), ())
                    if _is_affected(package, affected)
                ]
    return sorted(set(found))


def _is_of_our_debian(ecosystem: str) -> bool:
    name, _, release = ecosystem.partition(":")
    return name != "Debian" or release == _read_debian_release()


def _read_debian_release() -> str:
    """Return the release of Debian of the images, as in `12`."""
    base = (ROOT / "images/kontroller/Containerfile").read_text()
    names = {"bookworm": "12", "trixie": "13", "forky": "14"}
    return next(number for name, number in names.items() if f"debian:{name}-" in base)


def _is_affected(package: Package, affected: dict[str, Any]) -> bool:
    if package.version in affected.get("versions", ()):
        return True
    key = ORDERS[package.ecosystem]
    version = key(package.version)
    for each in affected.get("ranges", ()):
        if each.get("type") == "GIT":
            continue
        is_in = False
        for event in sorted(each.get("events", ()), key=lambda event: _order_event(event, key)):
            if (start := event.get("introduced")) is not None and (start == "0" or version >= key(start)):
                is_in = True
            if "fixed" in event and version >= key(event["fixed"]):
                is_in = False
            if "last_affected" in event and version > key(event["last_affected"]):
                is_in = False
        if is_in:
            return True
    return False


def _order_event(event: dict[str, str], key: Any) -> Any:
    ((_, version),) = list(event.items())[:1]
    return (0,) if version == "0" else (1, key(version))


def _list_fixed(affected: dict[str, Any]) -> Iterator[str]:
    for each in affected.get("ranges", ()):
        if each.get("type") != "GIT":
            yield from (event["fixed"] for event in each.get("events", ()) if "fixed" in event)


def _normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def read_accepted() -> dict[tuple[str, str], str]:
    """Return the reasons of the accepted vulnerabilities, by id and package."""
    lines = (line.split(maxsplit=2) for line in ACCEPTED.read_text().splitlines() if line and not line.startswith("#"))
    return {(id_, package): reason for id_, package, reason in lines}


def report(found: list[Finding], packages: int) -> int:
    """Print the vulnerabilities, and return the exit status. Those of Debian without a fix are only counted."""
    accepted = read_accepted()
    unfixed = [each for each in found if each.package.ecosystem == "Debian" and not each.fixed]
    known = [each for each in found if (each.id, each.package.name) in accepted]
    vulnerable = [each for each in found if each not in unfixed and each not in known]
    for each in vulnerable:
        fixed = ", ".join(each.fixed) or "no version yet"
        _print(f"{each.package.ecosystem} {each.package.name} {each.package.version}: {each.id}, fixed in {fixed}")
    for each in known:
        _print(f"accepted: {each.package.name}: {each.id}: {accepted[each.id, each.package.name]}")
    _print(
        f"{packages} packages looked up, {len({each.package for each in vulnerable})} known to be vulnerable; "
        f"{len(unfixed)} vulnerabilities of Debian's packages have no fix yet"
    )
    return _VULNERABLE if vulnerable else 0


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def main(*lists: str) -> int:
    """Check the lock files and the lists of parts."""
    files = [Path(each) for each in lists] or sorted(ROOT.glob("images/*/sbom.cdx.json"))
    packages = {package for lock in sorted((ROOT / "locks").glob("*.txt")) for package in read_lock(lock)}
    packages |= {package for file in files for package in read_parts(json.loads(file.read_text()))}
    found: list[Finding] = []
    for ecosystem in sorted({package.ecosystem for package in packages}):
        try:
            database, age_s = fetch_database(ecosystem, now_s=time.time())
        except Unanswered as error:
            sys.stderr.write(f"NOT AUDITED: {error}\n")
            return _UNANSWERED
        _print(f"{ecosystem}: database of {age_s / 3600:.0f} hours ago")
        found += find_vulnerable(database, packages)
    return report(found, len(packages))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
