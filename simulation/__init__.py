"""ZooKeeper, brokers and time without processes: the production controller runs over them, behind its own seams.

A scenario is a few lines:

    async with simulated_cluster() as cluster:      # checks.py: also looks that no controller was surprised
        cluster.start_brokers(1, 2, 3)              # cluster/: what brokers, people and tools do acts at once
        await cluster.serve()                       # a controller takes the role
        cluster.create_topic("orders", [1, 2, 3])
        await cluster.settle()                      # until nobody has anything left to do; time passes only here
        cluster.kill_broker(1)
        await cluster.settle()
        assert cluster.leadership(tp("orders")) == (2, [2, 3])
        assert_sound(cluster)                       # ZooKeeper, controller and brokers agree

`zookeeper` and `brokers` are held to the real servers by tests/contract. Faults are theirs: connections that are lost
before or after a write (`zookeeper`), brokers that hang and answers that get lost (`brokers`), processes that die at their
N-th act (`mortality`). Everything is in one event loop and on a clock that stands still (`virtual_time`), so a scenario
takes as long as its work and ends the same way each time; where others wait in the loop's own time, as the operator does,
it is a loop whose time jumps (`fast_loop`). Nothing that ships imports this package, and it imports nothing
but the core.
"""
