"""`collect()` keeps Spark for the next one: the second takes no start, a JVM that died is replaced, other settings get another session."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark
PROGRAM = """
import json
from millstream import FileSink, Settings, StreamEnvironment
from millstream.jvm import kept_session
from millstream.errors import MillstreamError

def collected(env):
    rows = env.from_rows([{"id": 1}, {"id": 2}]).collect().num_rows
    return rows, kept_session._place.session.jvm.process.pid

def killed():
    jvm = kept_session._place.session.jvm
    jvm.process.kill()
    jvm.process.wait()

first = collected(StreamEnvironment("a"))
again = collected(StreamEnvironment("b"))
killed()
replaced = collected(StreamEnvironment("c"))
other = collected(StreamEnvironment("d", settings=Settings(spark={"spark.sql.session.timeZone": "UTC", "spark.ui.enabled": "false"})))
session = kept_session.lend(kept_session._place.options, None)
try:
    StreamEnvironment("f", settings=Settings(spark={"spark.ui.enabled": "false"})).from_rows([{"id": 1}]).collect()
    refused = ""
except MillstreamError as error:
    refused = str(error)
session.close()
env = StreamEnvironment("e")
written = env.from_rows([{"id": 1}]).to(FileSink(path="out", format="json"), "out").execute().nodes["out"].rows_in
print(json.dumps({"first": first, "again": again, "replaced": replaced, "other": other, "written": written, "refused": refused}))
"""


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("program")
    (folder / "program.py").write_text(PROGRAM)
    done = subprocess.run([sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_the_second_one_has_the_same_jvm(facts: dict[str, Any]) -> None:
    assert facts["first"] == facts["again"]
    assert facts["first"][0] == 2


def test_one_that_died_is_replaced(facts: dict[str, Any]) -> None:
    assert facts["replaced"][0] == 2
    assert facts["replaced"][1] != facts["again"][1]


def test_other_settings_get_another_one_and_a_run_is_not_in_its_way(facts: dict[str, Any]) -> None:
    assert facts["other"][1] != facts["replaced"][1]
    assert facts["written"] == 1


def test_one_that_is_in_use_is_not_closed(facts: dict[str, Any]) -> None:
    assert "MS044" in facts["refused"] and "in use" in facts["refused"]


def test_none_outlives_the_process(facts: dict[str, Any]) -> None:
    pids = [facts[name][1] for name in ("first", "replaced", "other")]
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
