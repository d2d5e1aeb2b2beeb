"""Moves partitions of a topic to other brokers, with a limit, and waits until they are there.

python examples/library/move_partitions.py kafka-0:9092 plan.json
"""

import sys
from pathlib import Path

from kontroller import AdminError, BlockingAdminClient, Refused


def main(bootstrap: str, plan_file: str) -> int:
    plan = Path(plan_file).read_text()
    with BlockingAdminClient({"bootstrap.servers": bootstrap}) as admin:
        try:
            admin.throttle_reassignment(plan, bytes_per_second=50_000_000)
            ended = admin.reassign_partitions(plan).result()
            admin.unthrottle_reassignment(plan)
        except Refused as refused:
            print(f"Kafka refused it with code {refused.code.name}: {refused}", file=sys.stderr)
            return 1
        except AdminError as error:
            print(error, file=sys.stderr)
            return 1
    print(ended.error or "all partitions are on their brokers")
    return 0 if ended.error is None else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
