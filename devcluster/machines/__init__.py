"""Several machines on one: network namespaces of our own, a network between them that loses, holds back or swallows, and
clocks that are set."""
