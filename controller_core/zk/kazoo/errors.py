"""Translates kazoo's exceptions into the errors of `ZkSession`."""

from typing import Final

from kazoo.exceptions import (
    AuthFailedError,
    BadVersionError,
    ConnectionLoss,
    InvalidACLError,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    NoWatcherError,
    OperationTimeoutError,
    RequestTimeoutError,
    SessionClosedRequireSaslError,
    SessionExpiredError,
    SessionMovedError,
    ThrottledOpError,
    ZookeeperError,
)

from controller_core.zk.session import (
    AccessRefused,
    BadVersion,
    ConnectionLost,
    FailedOp,
    NodeExists,
    NoNode,
    NotEmpty,
    NoWatcher,
    SessionExpired,
    TransactionFailed,
    ZkError,
    explain_refused_access,
)

_ACCESS: Final = (AuthFailedError, InvalidACLError, NoAuthError, SessionClosedRequireSaslError)
_RETRIABLE: Final = (ConnectionLoss, OperationTimeoutError, RequestTimeoutError, SessionMovedError, ThrottledOpError)
_REFUSED: Final[dict[type[Exception], type[TransactionFailed]]] = {
    NodeExistsError: NodeExists,
    NoNodeError: NoNode,
    BadVersionError: BadVersion,
    NotEmptyError: NotEmpty,
}


def explain_loss(answer: object, trouble: str | None) -> object:
    """Return the `ConnectionLost` for a lost answer, with the reason why there is no new connection yet. Other answers
    are returned unchanged."""
    if trouble is None or not isinstance(answer, _RETRIABLE):
        return answer
    result = ConnectionLost(f"{translate_error(answer)}: {trouble}")
    result.__cause__ = answer
    return result


def translate_error(error: Exception, path: str | None = None) -> ZkError:
    """Return the `ZkError` for an exception of kazoo about a znode, with that exception as its cause."""
    if isinstance(error, ZkError):
        return error
    result: ZkError
    if isinstance(error, SessionExpiredError):
        result = SessionExpired("the ZooKeeper session has expired")
    elif isinstance(error, _RETRIABLE):
        result = ConnectionLost(f"ZooKeeper did not answer: {type(error).__name__}")
    elif isinstance(error, _ACCESS):
        result = AccessRefused(explain_refused_access(path, type(error).__name__))
    elif isinstance(error, NoWatcherError):
        result = NoWatcher("the watch no longer exists")
    else:
        result = ZkError(f"unexpected answer of ZooKeeper: {error!r}")
    result.__cause__ = error
    return result


def translate_failure(error: ZookeeperError, failed: FailedOp) -> ZkError:
    """Return the error for the operation that made a transaction fail."""
    result: ZkError
    if isinstance(error, _ACCESS):
        result = AccessRefused(explain_refused_access(failed.op.path, type(error).__name__), failed=failed)
    else:
        result = _REFUSED.get(type(error), TransactionFailed)(failed)
    result.__cause__ = error
    return result
