"""The settings of kopf: it watches fixed kinds and namespaces, never gives up, and writes nothing to any object."""

import itertools
import logging
from collections.abc import Iterable, Iterator
from typing import Any, Final

import kopf

from controller_operator.kubernetes.kubernetes_objects import PAGE

WATCH_S: Final = 15
"""Seconds after which the API server ends a watch, and kopf begins the next one at the same version. Such short watches
cost little, and a stream that hangs is found soon (`watch_requests`)."""
CONNECT_S: Final = 10
LIST_S: Final = 60
LONGEST_BACKOFF_S: Final = 5.0
_IDLE_S: Final = 0.2
"""Seconds for which kopf keeps a task for each changed object. A first listing of 10,000 objects adds up."""


def configure_kopf(settings: kopf.OperatorSettings) -> None:
    """Set everything that does not depend on the operator's own settings."""
    settings.posting.enabled = False
    settings.scanning.disabled = True  # needs no right outside the namespaces that are watched
    settings.watching.server_timeout = WATCH_S
    settings.watching.client_timeout = WATCH_S + CONNECT_S
    settings.watching.inactivity_timeout = WATCH_S + CONNECT_S / 2
    settings.watching.connect_timeout = settings.networking.connect_timeout = CONNECT_S
    settings.watching.chunk_size = PAGE
    settings.networking.request_timeout = LIST_S
    settings.networking.error_backoffs = Backoffs()
    settings.queueing.idle_timeout = _IDLE_S
    settings.process.ultimate_exiting_timeout = None  # the process exits anyway, see `kopf_watcher`
    settings.persistence.diffbase_storage = _NoDiffBase()
    settings.persistence.progress_storage = _NoProgress()
    settings.admission.managed = None  # the chart has the ValidatingWebhookConfiguration
    _quieten_logs()


class Backoffs(Iterable[float]):
    """Endless pauses between the attempts of a request, because kopf ends after the last pause."""

    def __iter__(self) -> Iterator[float]:
        return itertools.chain((0.5, 1.0, 2.0), itertools.repeat(LONGEST_BACKOFF_S))


class _NoDiffBase(kopf.DiffBaseStorage):
    """Keeps no copy of an object for comparisons. kopf would make one for every event."""

    def build(self, **_: Any) -> Any:
        return {}

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        """Write nothing."""


class _NoProgress(kopf.ProgressStorage):
    """Keeps no record of handlers, because those of events and admissions have none."""

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        """Write nothing."""

    def purge(self, **_: Any) -> None:
        """Do nothing, because there is nothing to remove."""

    def touch(self, **_: Any) -> None:
        """Write nothing."""

    def clear(self, *, essence: Any) -> Any:
        return essence


class _NoRefusals(logging.Filter):
    """Drops the error that kopf logs for each refused admission, because the webhook logs it too."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "failed permanently" not in record.getMessage()


_NO_REFUSALS: Final = _NoRefusals()


def _quieten_logs() -> None:
    # Would log each attempt of each request while the API server is away; `watch_requests` logs each trouble once.
    logging.getLogger("kopf._cogs.clients.api").setLevel(logging.CRITICAL)
    # Would log that it handles no signals in a thread; `process.signals` does.
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)
    logging.getLogger("kopf.objects").addFilter(_NO_REFUSALS)
