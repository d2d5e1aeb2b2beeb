"""ZooKeeper, brokers and time in memory, behind the interfaces of the real ones.

    async with simulate_cluster() as cluster:       # also checks that no controller logs a surprise
        cluster.start_brokers(1, 2, 3)
        await cluster.serve()                       # a production controller takes the role
        await cluster.settle()                      # until nothing is left to do; time passes only here
        assert_sound(cluster)                       # ZooKeeper, controller and brokers agree

Contract tests compare `zookeeper` and `brokers` with the real servers. `mortality` kills processes. `fast_loop` is for
code that waits in the loop's own time. Shipped code never imports this package.
"""
