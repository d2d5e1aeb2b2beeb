"""Several machines on one: network namespaces, a network between them that loses, delays or drops packets, and wall
clocks that tests set.
"""
