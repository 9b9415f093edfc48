"""Failures of memory, disks and networks."""

from __future__ import annotations

import re

from millstream.engine.failures.scene import Scene
from millstream.engine.failures.text import first_line
from millstream.errors import Diagnostic
from millstream.jvm.death import MEMORY_HELP

_TEMPORARY = (
    "ConnectException",
    "Connection refused",
    "Connection reset",
    "SocketTimeoutException",
    "UnknownHostException",
    "NoRouteToHost",
)
_CLIENTS = {
    "s3a": "org.apache.hadoop:hadoop-aws:3.4.2",
    "abfss": "org.apache.hadoop:hadoop-azure:3.4.2",
    "gs": "com.google.cloud.bigdataoss:gcs-connector:VERSION",
}
_CLASSES = {"s3a": "S3AFileSystem", "gs": "GoogleHadoopFileSystem", "abfss": "SecureAzureBlobFileSystem"}


def memory(text: str, scene: Scene) -> Diagnostic | None:
    """A task that got no memory; the JVM itself survives this."""
    if "SparkOutOfMemoryError" in text:
        help_ = f"{MEMORY_HELP}; or give each task less to do: `settings: {{spark: {{spark.sql.shuffle.partitions: '64'}}}}`"
        return _at(scene, Diagnostic("MS155", "a task of Spark got too little memory", help=help_))
    if "java.lang.OutOfMemoryError" not in text:
        return None
    return _at(scene, Diagnostic("MS155", "Spark's JVM ran out of memory", help=MEMORY_HELP))


def lost_rows(text: str, scene: Scene) -> Diagnostic | None:
    """An executor died with the rows of an incremental query that it held. A restart reads them back from the checkpoint."""
    if "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND" not in text:
        return None
    message = f"`{scene.where}` lost rows of its state, probably because an executor died; they are read back from the checkpoint"
    return _at(scene, Diagnostic("MS069", message))


def disk(text: str, scene: Scene) -> Diagnostic | None:
    """A full disk, or a path without permission."""
    name = f"`{scene.where}`" if scene.current else "the pipeline"
    if "No space left on device" in text or "Disk quota exceeded" in text:
        help_ = "make room and run again; the epoch is repeated, and nothing half-written is visible"
        return _at(scene, Diagnostic("MS068", f"{name} could not write: the disk is full", help=help_))
    if "Permission denied" in text or "AccessControlException" in text:
        path = re.search(r"(/[^\s:'\"()]+)[^\n]*Permission denied", text)
        return _at(scene, Diagnostic("MS061", f"{name}: permission denied{f' on `{path[1]}`' if path else ''}"))
    return None


def file_system(text: str, scene: Scene) -> Diagnostic | None:
    """A URL scheme that Hadoop has no classes for."""
    scheme = re.search(r"No FileSystem for scheme \"?(\w+)", text)
    lacking = next((each for each, word in _CLASSES.items() if re.search(rf"Class\S* \S*{word} not found", text)), "")
    if not scheme and not lacking:
        return None
    found = lacking or (scheme[1] if scheme else "")
    jar = _CLIENTS.get(found, "GROUP:ARTIFACT:VERSION")
    help_ = f"the jars are not part of Spark; add them: `settings: {{spark: {{spark.jars.packages: '{jar}'}}}}`"
    name = f"`{scene.where}`" if scene.current else "the pipeline"
    return _at(scene, Diagnostic("MS164", f"{name}: Spark has no classes for `{found}://` here", help=help_))


def network(text: str, scene: Scene) -> Diagnostic | None:
    """A network failure, which is temporary."""
    sign = next((sign for sign in _TEMPORARY if sign in text), "")
    if not sign:
        return None
    return _at(scene, Diagnostic("MS069", f"`{scene.where}` had a temporary failure: {first_line(text)}", cause=sign))


def _at(scene: Scene, found: Diagnostic) -> Diagnostic:
    node = scene.current
    return found.at(node.span if node else None, scene.where if node else "")
