"""Several machines on one: network namespaces of our own, and a network between them that loses, holds back or swallows."""
