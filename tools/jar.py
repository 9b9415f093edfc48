"""Compiles the Java classes of the package into the jar beside them, with the compiler that is part of Spark: no JDK is needed.

The same source always gives the same bytes, so a test can tell whether the jar is up to date.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

from millstream.jvm.launch import OWN_CLASSES
from millstream.jvm.session import SessionOptions, begin
from millstream.sql.own_functions import table_for_java

_PACKAGE = "millstream"
_ORDER = (
    *("RawLocalFiles", "LocalFiles"),
    *("TraceContext", "TraceLog", "TraceTap"),
    *("Refusal", "Bytes", "Digests", "XxHash3", "WideIntegers", "Encodings", "JsonPaths", "SqlFunction", "SqlFunctions"),
)
"""A class comes after those that it uses."""
_MADE = (1980, 1, 1, 0, 0, 0)


def jar_of(jvm: Any, folder: Path = OWN_CLASSES.parent) -> bytes:
    """The jar, compiled now."""
    loader, classes = jvm.Thread.currentThread().getContextClassLoader(), dict[str, bytes]()
    for name in _ORDER:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(loader)
        compiler.cook((folder / f"{name}.java").read_text())
        classes |= {str(made): bytes(code) for made, code in compiler.getBytecodes().items()}
        loader = compiler.getClassLoader()
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as jar:
        for name in sorted(classes):
            jar.writestr(zipfile.ZipInfo(f"{name.replace('.', '/')}.class", _MADE), classes[name])
        jar.writestr(zipfile.ZipInfo(f"{_PACKAGE}/functions.tsv", _MADE), table_for_java())
    return written.getvalue()


def main() -> None:
    session = begin(SessionOptions(master="local[1]", profile="short", conf={"spark.hadoop.fs.file.impl": _PLAIN})).finish()
    OWN_CLASSES.write_bytes(jar_of(session.spark._jvm))
    session.close()
    print(f"wrote {OWN_CLASSES.name}, {OWN_CLASSES.stat().st_size:,} bytes")


_PLAIN = "org.apache.hadoop.fs.RawLocalFileSystem"
"""The session that compiles the classes cannot use them."""


if __name__ == "__main__":
    main()
