"""A program beside Kontroller: Delta Lake's own library, on a Spark of its own. Reads the tables below a folder, as JSON.

Arguments: the folder, a folder for copies of the newest rows, and the jars.
"""

import json
import re
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from kontroller.history.session import Size, local_session

SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
}
LOOKED_AT_CLOSELY = "events"
WRITES = ("DELETE FROM {}", "VACUUM {}", "VACUUM {} RETAIN 0 HOURS")


def read_table(spark: SparkSession, path: Path, copies: Path) -> dict[str, object]:
    """Return the columns that divide a table and the number of its files. Copy its rows to a folder."""
    name = f"delta.`{path}`"
    spark.table(name).write.parquet(str(copies / path.name))
    detail = spark.sql(f"DESCRIBE DETAIL {name}").collect()[0]
    shown: dict[str, object] = {"divided by": detail.partitionColumns, "files": detail.numFiles}
    return shown | (read_versions(spark, path) if path.name == LOOKED_AT_CLOSELY else {})


def read_versions(spark: SparkSession, path: Path) -> dict[str, object]:
    """Return the generations that the table history names, the rows of the first version, and the errors of writes."""
    name = f"delta.`{path}`"
    history = spark.sql(f"DESCRIBE HISTORY {name}").orderBy("version").collect()
    first = spark.read.format("delta").option("versionAsOf", history[0].version).load(str(path))
    return {
        "generations": [row.userMetadata for row in history],
        "first rows": first.count(),
        "refused": [refusal(spark, write.format(name)) for write in WRITES],
    }


def refusal(spark: SparkSession, write: str) -> str:
    try:
        spark.sql(write).collect()
    except Exception as error:  # noqa: BLE001  # which one is what is asked
        found = re.search(r"DELTA_\w+", str(error))
        return found[0] if found else str(error)
    return ""


if __name__ == "__main__":
    folder, copies, jars = sys.argv[1:]
    spark = local_session("others", shuffle_partitions=2, size=Size.SMALL, more=SETTINGS | {"spark.jars": jars})
    tables = sorted(path.parent for path in Path(folder).glob("*/*/_delta_log"))
    sys.stdout.write(json.dumps({path.name: read_table(spark, path, Path(copies)) for path in tables}) + "\n")
    spark.stop()
