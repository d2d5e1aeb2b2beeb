"""The precedence of quotas, and the sharing between clients, as in Kafka's `ClientQuotaManager`.

A quota is set for a user, for a client id, or for both together. Instead of a name it may have the default, which
stands for everybody without a quota of their own. Only the first existing quota counts. All clients of a user share a
quota that is set for users. For a quota on both, each client id of each user has its own share. All clients with an id
share a quota that is set for client ids, whoever the user is.
"""

from typing import Final, NamedTuple

EVERYBODY: Final = "<default>"
"""The default, in place of a name. No name is spelled like this, because names are encoded."""


class Entity(NamedTuple):
    """The owner of a quota, or the clients that share one. Names are encoded as in paths. None: any name."""

    user: str | None
    client_id: str | None


class Candidate(NamedTuple):
    """A quota that may exist for a client."""

    entity: Entity
    sharing: Entity
    """The clients that share the quota."""


def list_candidates(user: str, client_id: str) -> tuple[Candidate, ...]:
    """Return the quotas that may count for a client, the first one first.

    A quota for a name does not match an empty name: as in Kafka, a client without an id has only the quotas of users.
    """
    both, as_user, as_client = Entity(user, client_id), Entity(user, None), Entity(None, client_id)
    ordered = (
        Candidate(Entity(user, client_id), both),
        Candidate(Entity(user, EVERYBODY), both),
        Candidate(Entity(user, None), as_user),
        Candidate(Entity(EVERYBODY, client_id), both),
        Candidate(Entity(EVERYBODY, EVERYBODY), both),
        Candidate(Entity(EVERYBODY, None), as_user),
        Candidate(Entity(None, client_id), as_client),
        Candidate(Entity(None, EVERYBODY), as_client),
    )
    return tuple(candidate for candidate in ordered if "" not in candidate.sharing)
