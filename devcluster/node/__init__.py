"""One node of Kubernetes on this machine, without a container engine: pods really run, and their hooks really fire.

All of it lives in namespaces of its own (`isolation`): network, mounts, processes and cgroups. So nothing it does to
bridges, iptables, mounts or processes is seen outside, two nodes run side by side on the same addresses, and when the
namespaces' first process is gone, however it ended, the kernel removes all of that.
"""
