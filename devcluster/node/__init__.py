"""A Kubernetes node on this machine, without a container engine: pods really run, with their hooks.

The node lives in its own namespaces (`isolation`): network, mounts, processes and cgroups. So its bridges, iptables
rules, mounts and processes are invisible outside, and two nodes can use the same addresses in parallel. When the
namespaces' first process is gone, however it ended, the kernel removes all of that.
"""
