"""The operator's kopf handlers. They pass kopf's events and questions to the operator, which works in its own loop.

`kontroller operator run` runs kopf with them (`watching.kopf_watcher`). For development, `kopf run` does the same:

    KONTROLLER_ALL_NAMESPACES=true kopf run --all-namespaces --module controller_operator.handlers

kopf writes nothing to any object. `kopf.on.event` is the only kind of handler that needs neither a finalizer nor an
annotation. The operator keeps its memory in the statuses, which it writes itself.
"""

from typing import Any, Final

import kopf

from controller_operator.development import start_operator
from controller_operator.resources.common import GROUP, VERSION

_UNPROCESSABLE: Final = 422
_WRITES: Final[Any] = ("CREATE", "UPDATE", "DELETE")


@kopf.on.startup()
async def start(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    """Configure kopf. Under `kopf run`, also start the operator."""
    if "watcher" not in memo:
        memo.operator = await start_operator(is_clusterwide=settings.peering.clusterwide)
        memo.watcher = memo.operator.watcher
    memo.watcher.configure(settings)


@kopf.on.cleanup()
async def stop(memo: kopf.Memo, **_: Any) -> None:
    """Stop the operator that `start` started."""
    if "operator" in memo:
        await memo.operator.stop()


@kopf.on.login()
async def log_in(memo: kopf.Memo, **_: Any) -> kopf.AiohttpSession:
    """Log in with the operator's credentials, at the start and after a 401."""
    session: kopf.AiohttpSession = await memo.watcher.log_in()
    return session


@kopf.on.probe(id="trouble")
async def report_trouble(memo: kopf.Memo, **_: Any) -> str:
    """Answer `kopf run --liveness`. In production the operator has probes of its own (`probes`)."""
    return memo.watcher.trouble or "none"


@kopf.on.event(GROUP, VERSION, "kafkaclusters")
@kopf.on.event(GROUP, VERSION, "kafkatopics")
@kopf.on.event(GROUP, VERSION, "partitionreassignments")
@kopf.on.event(GROUP, VERSION, "preferredelections")
@kopf.on.event(GROUP, VERSION, "featuresets")
@kopf.on.event(GROUP, VERSION, "rebalanceplans")
async def hand_over(event: kopf.RawEvent, memo: kopf.Memo, **_: Any) -> None:
    """Pass on an object in its present state, or in its last one if it was deleted."""
    memo.watcher.hand_over(event)


@kopf.on.validate(GROUP, VERSION, "kafkaclusters", operations=_WRITES)
@kopf.on.validate(GROUP, VERSION, "kafkatopics", operations=_WRITES)
@kopf.on.validate(GROUP, VERSION, "partitionreassignments", operations=_WRITES)
@kopf.on.validate(GROUP, VERSION, "preferredelections", operations=_WRITES)
@kopf.on.validate(GROUP, VERSION, "featuresets", operations=_WRITES)
@kopf.on.validate(GROUP, VERSION, "rebalanceplans", operations=_WRITES)
async def judge(
    warnings: list[str], memo: kopf.Memo, new: kopf.Body | None = None, old: kopf.Body | None = None, **_: Any
) -> None:
    """Refuse an object that only another spec would cure, and warn of any other trouble that its status would show."""
    judgement = await memo.watcher.judge(dict(new) if new else None, dict(old) if old else None)
    warnings.extend(judgement.warnings)
    if judgement.refusal is not None:
        raise kopf.AdmissionError(judgement.refusal, code=_UNPROCESSABLE)
