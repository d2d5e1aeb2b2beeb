"""Whose quota counts for who asks, in Kafka's order, and with whom he shares it (`ClientQuotaManager`).

A quota is set for a user, for a client id, or for both together; in the place of a name may stand everybody who has none of
his own. The first that there is counts, and no other. All clients of a user share what is set for users; by what is set for
both, each client id of each user has a share of its own; and by what is set for client ids, each id, whoever the user is.
"""

from typing import Final, NamedTuple

EVERYBODY: Final = "<default>"
"""Stands for a name. No name is spelled so, as names are encoded."""


class Entity(NamedTuple):
    """For whom a quota is set, or who share one; names as they are encoded in paths. None: whatever the name is."""

    user: str | None
    client_id: str | None


class Candidate(NamedTuple):
    """A quota that there may be for somebody."""

    entity: Entity
    sharing: Entity
    """Those who share it with him."""


def candidates(user: str, client_id: str) -> tuple[Candidate, ...]:
    """The quotas that may count for somebody, the first one first. None that is set for names counts for who has none (""):
    as with Kafka, for a client without an id there are quotas of users alone."""
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
