"""What a command needs, of the machine or in the cache: which parts there are, and several of them filled side by side."""
