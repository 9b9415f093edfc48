"""Avoids repeated work before every Python task.

Spark's workers have zip archives on their path (PySpark, Py4J, Spark's core jar with its thousands of entries), and invalidate the import
caches before each task. Python before 3.13 then reads each archive's table of contents again: 200 ms of CPU in every task. So the finders
are removed; Python creates them again from tables that it still has when something is imported.
"""

from __future__ import annotations

import sys
import zipimport

_NO_PYTHON = "spark-core_"


def forget_archives() -> None:
    """Call it at the end of a task, for the next one."""
    sys.path[:] = [path for path in sys.path if not path.rpartition("/")[2].startswith(_NO_PYTHON)]
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            del sys.path_importer_cache[path]
