"""The JVM is asked once what a Java name stands for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from py4j.java_gateway import JavaPackage

from millstream.jvm import names

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
    assert "MissingClass" not in vars(spark_package)
    assert jvm.java.lang.Integer.MAX_VALUE == 2**31 - 1
    assert "MAX_VALUE" not in vars(jvm.java.lang.Integer)


def test_the_value_of_a_static_field_is_asked_for_each_time() -> None:
    owner = SimpleNamespace()
    assert [names._remember(owner, "counter", value) for value in (1, 2)] == [1, 2]
    assert vars(owner) == {}


def test_what_is_called_like_a_class_and_is_none_yet_is_asked_for_again() -> None:
    """It may come with a later jar."""
    owner = SimpleNamespace()
    package = JavaPackage("org.example.Later", None, None)
    names._remember(owner, "Later", package)
    assert vars(owner) == {}
    names._remember(owner, "later", package)
    assert set(vars(owner)) == {"later"}
