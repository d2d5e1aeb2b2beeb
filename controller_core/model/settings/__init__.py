"""Settings in brokers' files that the controller of a cluster needs, too."""
