"""What a Python worker need not do again before every task.

Spark's workers have zip archives on their path (PySpark, Py4J, Spark's core jar with its thousands of entries), and drop all that imports
have found before each task. Python before 3.13 answers by reading each archive's table of contents anew: 200 ms of CPU, in every task.
Finders that are not there cannot be asked; Python makes them again, from tables it still has, when something is imported.
"""

from __future__ import annotations

import sys
import zipimport

_NO_PYTHON = "spark-core_"


def forget_archives() -> None:
    """Called at the end of a task, for the next one."""
    sys.path[:] = [path for path in sys.path if not path.rpartition("/")[2].startswith(_NO_PYTHON)]
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            del sys.path_importer_cache[path]
