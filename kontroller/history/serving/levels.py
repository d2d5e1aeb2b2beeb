"""Prometheus metrics of the service levels in a report's table `service_levels`."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import structlog
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from controller_core.wire.limits.complaints import Complaints

log = structlog.get_logger()

PAGE: Final = "index.html"
LEVELS: Final = "tables/service_levels.json"
MOST_BYTES: Final = 64 << 20
"""The largest table that is read: a row has about 400 bytes, so it has the levels of more than 20,000 clusters."""
_WINDOWS: Final = {300: "5m", 1800: "30m", 3600: "1h", 21_600: "6h", 259_200: "3d", 2_419_200: "28d"}
_BOUNDS: Final = ("at_least", "at_most")
_LABELS: Final = ("cluster", "window", "bound")


class LevelMetrics(Collector):
    """The metrics. A table that is missing or damaged has none, and is named in the log once a minute."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._complaints = Complaints(log)
        self._stamp: tuple[int, int] | None = None
        self._rows: list[Mapping[str, Any]] = []

    def collect(self) -> Iterator[Metric]:
        written = GaugeMetricFamily(
            "kontroller_history_report_timestamp_seconds", "Time at which the report was written"
        )
        page = self._folder / PAGE
        if page.is_file():
            written.add_metric((), page.stat().st_mtime)
        yield written
        rows = self._read_rows()
        for field, name, documentation in (
            ("availability", "availability_ratio", "Availability in a window; unknown time counts as down, or as up"),
            ("burn_rate", "burn_rate", "Lost part over the allowed part of a window; of 28 days, the spent budget"),
        ):
            family = GaugeMetricFamily(f"kontroller_history_{name}", documentation, labels=_LABELS)
            for row in rows:
                for bound in _BOUNDS:
                    value = row.get(f"{field}_{bound}")
                    if isinstance(value, float | int):
                        family.add_metric((row["cluster_id"], _WINDOWS[row["window_seconds"]], bound), value)
            yield family
        objective = GaugeMetricFamily("kontroller_history_objective_ratio", "Objective of availability")
        if rows and rows[0].get("objective") is not None:
            objective.add_metric((), rows[0]["objective"])
        yield objective

    def _read_rows(self) -> list[Mapping[str, Any]]:
        """Return the rows of the table. It is read again only when it changes."""
        path = self._folder / LEVELS
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_ino)
            if stamp != self._stamp:
                self._rows = _parse(path, status.st_size)
                self._stamp = stamp
        except FileNotFoundError:
            self._stamp, self._rows = None, []
        except (OSError, ValueError, KeyError, TypeError) as error:
            self._complaints.warn((), "the service levels cannot be read", path=str(path), reason=str(error))
            self._stamp, self._rows = None, []
        return self._rows


def _parse(path: Path, size: int) -> list[Mapping[str, Any]]:
    """Return the rows of windows that are known here. Raises `ValueError`, `KeyError` or `TypeError` for other rows."""
    if size > MOST_BYTES:
        raise ValueError(f"it has {size:,} bytes, and at most {MOST_BYTES:,} are read")
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [row for row in rows if row["window_seconds"] in _WINDOWS and isinstance(row["cluster_id"], str)]
