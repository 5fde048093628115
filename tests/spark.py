"""Sessions of Spark for the tests: small, without pages of their own, in another time zone."""

from typing import Any


def open_session(mode: str) -> Any:
    """Return a session: of threads (`local[2]`), of two executors, or over Spark Connect."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(mode).appName("tests")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "America/New_York",
}
