"""The limits of a page, so that it opens at once for a history of any length."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    table_rows: int = 200
    listed_clusters: int = 1000
    """Each listed cluster has a row and a tile."""
    concerns: int = 8
    """The clusters that need attention at the top of the page."""
    clusters: int = 6
    """The clusters that are drawn over time. Sums cover all clusters."""
    episodes: int = 4
    marks: int = 12
    told_losses: int = 6
    """The brokers whose loss an episode's story names."""
    told_outages: int = 5
    """The kinds of incidents that an episode's story describes."""
    episode_brokers: int = 12
    bars: int = 60
    """The bars of a row of an episode."""
    outlooks: int = 100
    """The clusters whose budget has an outlook, those that need attention first."""
    topics: int = 20
    brokers: int = 40
    """The brokers in one kind of picture, over all clusters."""
    pieces: int = 96
    """The pieces of time in pictures with rows."""
    spans: int = 400
    reassignments: int = 40
    requests: int = 1000
    """The requests of a cluster with the same outcome, in the table beside the page. Older ones are only counted."""

    def rows_of(self, listing: str) -> int:
        return self.listed_clusters if listing == "clusters" else self.table_rows
