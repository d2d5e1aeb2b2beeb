"""Prints the topics of a cluster with their partitions, by asyncio.

python examples/library/describe_topics.py kafka-0:9092
"""

import asyncio
import sys

from kontroller import AdminClient


async def main(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = await admin.list_topics()
    for topic in await admin.describe_topics(topics.alive):
        print(topic.topic, f"({len(topic.partitions)} partitions)")
        for partition in topic.partitions:
            print(f"  {partition.partition}: leader {partition.leader}, in sync {list(partition.isr)}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
