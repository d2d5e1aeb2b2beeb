"""Rows of a result file."""


def run(controller: str, partitions: int, seconds: float, **more: object) -> dict[str, object]:
    return {
        "controller": controller, "scenario": "broker_death", "variant": "", "partitions": partitions,
        "seconds": seconds, "cpu_s": seconds, "rss_mb": None, **more,
    }  # fmt: skip


def transfer(way: str, sessions: int, seconds: float, **more: object) -> dict[str, object]:
    return {"way": way, "batch": 1, "window": 1, "sessions": sessions, "partitions": 10_000, "seconds": seconds, **more}
