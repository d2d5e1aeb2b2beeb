"""How much of anything a page takes, so that it opens at once however long the history is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    table_rows: int = 200
    listed_clusters: int = 1000
    """Each has a row, and a tile."""
    concerns: int = 8
    """Clusters that need a look, at the top of the page."""
    clusters: int = 6
    """Those that are drawn over time; the sums are of all."""
    episodes: int = 4
    marks: int = 12
    told_losses: int = 6
    """Brokers whose loss an episode's sentence names."""
    told_outages: int = 5
    """Kinds of incidents that it tells."""
    episode_brokers: int = 12
    bars: int = 60
    """In one row of an episode."""
    topics: int = 20
    brokers: int = 40
    """In one kind of picture, of all clusters together."""
    pieces: int = 96
    """Of time, in pictures with rows."""
    spans: int = 400
    reassignments: int = 40

    def rows_of(self, listing: str) -> int:
        return self.listed_clusters if listing == "clusters" else self.table_rows
