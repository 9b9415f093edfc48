"""The JVM is asked once what a Java name stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_packages_classes_and_methods_are_known_and_what_may_come_with_a_jar_is_not(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    spark_package = jvm.org.apache.spark
    assert jvm.org.apache.spark is spark_package
    assert spark_package.SparkEnv is spark_package.SparkEnv
    assert jvm.java.lang.Math.abs is jvm.java.lang.Math.abs
    assert jvm.java.lang.Math.abs(-2) == 2
    assert jvm.java.util.ArrayList() is not jvm.java.util.ArrayList()
    assert spark_package.MissingClass is not spark_package.MissingClass
