"""Sessions of Spark for the tests: small, without pages of their own, in another time zone.

A session also serves Spark Connect.
"""

import os
import shutil
import sys

import pytest

SETTINGS = {
    # The first job waits until all executors are there.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "America/New_York",
    # Tiny frames: to compile takes longer than to run.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
}


def open_session(master):
    """Return a session of threads (`local[2]`) or of two executors.

    Without Java the test is skipped; in CI it fails.
    """
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        refuse = pytest.fail if os.environ.get("CI") else pytest.skip
        refuse("no Java found: PySpark was NOT checked (apt-get install default-jre-headless)")
    import pyspark
    from pyspark.sql import SparkSession

    os.environ["SPARK_HOME"] = os.path.dirname(pyspark.__file__)
    os.environ["PYSPARK_PYTHON"] = sys.executable  # of the executors
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master(master).appName("tests")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def connect_session(session):
    """Return a session over Spark Connect to the process of another session."""
    from pyspark.sql.connect.session import SparkSession

    services = session._jvm.org.apache.spark.sql.connect.service
    port = getattr(getattr(services, "SparkConnectService$"), "MODULE$").localPort()
    remote = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
    remote.conf.set("spark.sql.session.timeZone", SETTINGS["spark.sql.session.timeZone"])
    return remote


def close_gateway():
    """End the Java process of the sessions, and wait until it has ended."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=30)
    SparkContext._gateway = SparkContext._jvm = None
