"""What a follower does: cuts off what its leader does not have, and fetches what it has."""
