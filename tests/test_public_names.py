"""What `import millstream` offers is a list, sorted and complete; and it costs nothing."""

import subprocess
import sys
from importlib import metadata

import millstream

NO_SPARK = """
import sys
import millstream
assert not {"pyspark", "py4j", "pyarrow", "pydantic", "sqlglot"} & set(sys.modules), sorted(sys.modules)
from millstream import StreamEnvironment, FileSource, FileSink, GeneratorSource, PrintSink, col
env = StreamEnvironment("p")
env.from_source(FileSource(path="x", format="json", schema={"a": "int64"})).filter(col("a") > 1).to(PrintSink())
assert not {"pyspark", "py4j"} & set(sys.modules)
"""
CHECK = """
import sys, subprocess
started = []
subprocess.Popen.__init__ = lambda *a, **k: started.append(a) or (_ for _ in ()).throw(AssertionError("a process was started"))
sys.argv = ["millstream", "check", sys.argv[1]]
from millstream.cli import main
try:
    main()
except SystemExit as left:
    assert left.code in (0, None), left.code
assert not {"pyspark", "py4j", "pandas", "numpy"} & set(sys.modules), sorted(set(sys.modules) & {"pyspark", "py4j", "pandas", "numpy"})
"""
PIPELINE = """
sources: {a: {type: generator, rows: 3, fields: {id: {type: sequence}}}}
transforms: {b: {type: sql, sql: SELECT id FROM a WHERE id > 1}}
sinks: {c: {type: print, from: b}}
"""


def test_completion_and_version_are_there_before_anything_is_loaded() -> None:
    assert set(millstream.__all__) <= set(dir(millstream))
    assert millstream.__version__ == metadata.version("millstream")


def test_the_public_names_are_sorted_and_all_of_them_can_be_had() -> None:
    assert millstream.__all__ == sorted(millstream.__all__)
    assert all(getattr(millstream, name) is not None for name in millstream.__all__)


def test_every_built_in_source_and_sink_has_a_public_name() -> None:
    built_in = [entry.value.partition(":") for entry in metadata.entry_points(group="millstream.plugins")]
    ends = {name for module, _, name in built_in if module.startswith("millstream.connectors.")}
    assert len(ends) > 10 and ends <= set(millstream.__all__)


def test_building_a_plan_imports_no_spark() -> None:
    subprocess.run([sys.executable, "-c", NO_SPARK], check=True)


def test_check_imports_no_spark_and_starts_no_process(tmp_path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    subprocess.run([sys.executable, "-c", CHECK, str(tmp_path / "p.yaml")], check=True)
