"""A local HTTP server that keeps to the contract of Alertmanager's API v2, and checks of an alert what that checks.

https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml, `postableAlerts`; names and the order of times are
checked by its `types.Alert.Validate`. As there, the alerts of a request that are valid are taken, and the answer is 400."""

import re
from datetime import UTC, datetime
from typing import Any, Final

from aiohttp import web
from jsonschema import Draft202012Validator, FormatChecker

_TIME: Final = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$"
_LABELS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
_ALERT: Final = {
    "type": "object",
    "required": ["labels"],
    "additionalProperties": False,
    "properties": {
        "labels": _LABELS,
        "annotations": _LABELS,
        "startsAt": {"type": "string", "format": "date-time", "pattern": _TIME},
        "endsAt": {"type": "string", "format": "date-time", "pattern": _TIME},
        "generatorURL": {"type": "string", "format": "uri"},
    },
}
CONTRACT: Final = Draft202012Validator({"type": "array", "items": _ALERT}, format_checker=FormatChecker())
_LABEL_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


class StrictAlertmanager:
    """`answers`: the next statuses, given without a look at the requests; `alerts`: the newest of each, by labels."""

    def __init__(self, path: str = "") -> None:
        self.requests: list[list[dict[str, Any]]] = []
        self.answers: list[int] = []
        self.faults: list[str] = []
        self.alerts: dict[frozenset[tuple[str, str]], dict[str, Any]] = {}
        self._path = path
        self._runner: web.AppRunner | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self._path}"

    async def start(self) -> None:
        """Start at a port, which stays the same after a restart."""
        application = web.Application(client_max_size=1 << 24)
        application.add_routes([web.post(f"{self._path}/api/v2/alerts", self._take)])
        self._runner = web.AppRunner(application)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def list_firing(self, now_s: float) -> list[dict[str, str]]:
        """Return the labels of firing alerts. An alert ends at its `endsAt`, even if nobody resolves it."""
        now = datetime.fromtimestamp(now_s, UTC)
        return [it["labels"] for it in self.alerts.values() if datetime.fromisoformat(it["endsAt"]) > now]

    async def _take(self, request: web.Request) -> web.Response:
        if self.answers and (status := self.answers.pop(0)) != 200:
            return web.json_response("not now", status=status)
        if request.content_type != "application/json":
            self.faults.append(f"content type {request.content_type}")
            return web.Response(status=415)
        body = await request.json()
        faults = [error.message for error in CONTRACT.iter_errors(body)]
        if faults:
            self.faults += faults
            return web.json_response(faults, status=422)
        self.requests.append(body)
        faults = [fault for alert in body if (fault := self._take_one(alert)) is not None]
        self.faults += faults
        return web.json_response(faults, status=400) if faults else web.Response()

    def _take_one(self, alert: dict[str, Any]) -> str | None:
        labels = alert["labels"]
        if not labels.get("alertname") or not all(_LABEL_NAME.fullmatch(name) for name in labels):
            return f"label names {list(labels)}"
        if any(value == "" for value in labels.values()):
            return "a label without a value is none"
        if datetime.fromisoformat(alert["endsAt"]) < datetime.fromisoformat(alert["startsAt"]):
            return "start time must be before end time"
        self.alerts[frozenset(labels.items())] = alert
        return None
