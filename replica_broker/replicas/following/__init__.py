"""The work of a follower: truncate what the leader does not have, and fetch the rest."""
