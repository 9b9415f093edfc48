"""What a session is like from inside and what it leaves behind, seen by one process that has two of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.spark

SCRIPT = """
import json, os, signal, sys
from pathlib import Path
from millstream.jvm.session import Session, SessionOptions, begin
from millstream.errors import SetupError
from millstream.jvm.log import JvmLog

handler = lambda *_: None
signal.signal(signal.SIGINT, handler)
conf = {"spark.sql.session.timeZone": "Europe/Berlin", "spark.master": "local[7]", "spark.driver.memory": "600m"}
facts = {}
starting = begin(SessionOptions(app_name="facts", master="local[2]", conf=conf, profile="short", log_dir=Path("logs")))
facts["imported"] = [name for name in sys.modules if name.split(".")[0] in ("pyspark", "py4j", "pandas", "pyarrow")]
facts["alive"] = starting.jvm.alive
with starting.finish() as session:
    spark, jvm = session.spark, session.jvm
    facts["times"] = dict(session.times)
    facts["conf"] = {name: spark.conf.get(name) for name in (
        "spark.master", "spark.app.name", "spark.sql.shuffle.partitions", "spark.sql.session.timeZone", "spark.ui.enabled",
        "spark.sql.ansi.enabled", "spark.sql.streaming.stateStore.providerClass", "spark.driver.host")}
    facts["warnings"] = [diagnostic.code for diagnostic in session.diagnostics]
    facts["secret"] = [name for name in os.environ if name.startswith("PYSPARK_GATEWAY")]
    facts["handler"] = signal.getsignal(signal.SIGINT) is handler
    facts["heap"] = spark._jvm.java.lang.Runtime.getRuntime().maxMemory() >> 20
    def where(batches):
        import pyarrow as pa
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable]})
    facts["python"] = spark.range(1).mapInArrow(where, "python string").first()[0]
    spark._jvm.org.slf4j.LoggerFactory.getLogger("facts").warn("a warning for the log")
    spark._jvm.System.out.println("a line for the log")
    for _ in range(25):
        spark._jvm.org.slf4j.LoggerFactory.getLogger("facts").warn("x" * (1 << 20))
    spark.range(3).write.saveAsTable("kept")
    try:
        begin(SessionOptions())
    except SetupError as error:
        facts["second"] = str(error)
    adopted = Session.adopt(spark)
    adopted.close()
    facts["adopted"] = spark.range(2).count()
    folder = jvm.scratch.path
    facts["scratch"] = sorted(path.name for path in folder.iterdir() if path.is_file())
session.close()
facts["gone"] = not jvm.alive and not folder.exists()
facts["log"] = Path("logs/jvm.1.log").read_text()[:50000] + Path("logs/jvm.out").read_text()
facts["logs"] = {path.name: path.stat().st_size for path in Path("logs").glob("jvm*.log")}
try:
    begin(SessionOptions(master="nowhere://x", log_dir=Path("logs"))).finish()
except SetupError as error:
    facts["nowhere"] = str(error)
Path("logs/beside.py").write_text("WORD = 'found'")
submitted = {"spark.submit.pyFiles": "logs/beside.py", "spark.app.note": "a = b: ü"}
log = JvmLog("json", "shop")
with begin(SessionOptions(master="local[1]", profile="small", conf=submitted, log=log, log_dir=Path("logs/json"))).finish() as again:
    import beside
    facts["beside"] = beside.WORD
    facts["note"] = again.spark.conf.get("spark.app.note")
    facts["again"] = again.spark.range(5).count()
    facts["slots"] = again.spark.conf.get("spark.sql.shuffle.partitions")
    failure = again.spark._jvm.java.lang.IllegalStateException("it 'broke'")
    again.spark._jvm.org.slf4j.LoggerFactory.getLogger("a.facts").error('two\\nlines, "quoted"', failure)
    again.spark._jvm.org.slf4j.LoggerFactory.getLogger("a.facts").warn("no stack")
    facts["json"] = Path("logs/json/jvm.log").read_text()
    facts["words"] = again.jvm.last_words()
    again.jvm.process.kill()
    again.jvm.process.wait()
with begin(SessionOptions(master="local[1]", profile="short")).finish() as last:
    facts["last"] = last.spark.range(7).count()
print(json.dumps(facts))
"""


@pytest.fixture(scope="module")
def facts(script: Callable[..., Any]) -> Any:
    return script(SCRIPT)


def test_the_jvm_starts_before_anything_of_spark_is_imported(facts: Any) -> None:
    assert facts["alive"]
    assert facts["imported"] == []


def test_every_phase_of_the_start_is_timed(facts: Any) -> None:
    assert list(facts["times"]) == ["launch", "import", "jvm", "session"]
    assert all(seconds >= 0 for seconds in facts["times"].values())
    assert facts["times"]["session"] > 0


def test_the_options_arrive(facts: Any) -> None:
    assert facts["conf"]["spark.master"] == "local[2]"
    assert facts["conf"]["spark.app.name"] == "facts"


def test_our_defaults_hold_where_the_user_says_nothing(facts: Any) -> None:
    assert facts["conf"]["spark.sql.shuffle.partitions"] == "2"
    assert facts["conf"]["spark.ui.enabled"] == "false"
    assert facts["conf"]["spark.driver.host"] == "127.0.0.1"
    assert facts["conf"]["spark.sql.streaming.stateStore.providerClass"].endswith("RocksDBStateStoreProvider")


def test_sparks_own_default_holds_where_nobody_says_anything(facts: Any) -> None:
    assert facts["conf"]["spark.sql.ansi.enabled"] == "true"


def test_the_users_settings_win(facts: Any) -> None:
    assert facts["conf"]["spark.sql.session.timeZone"] == "Europe/Berlin"
    assert 500 < facts["heap"] <= 600


def test_a_setting_that_cannot_be_used_is_a_warning(facts: Any) -> None:
    assert facts["warnings"] == ["MS046"]


def test_the_gateways_secret_is_not_left_in_the_environment(facts: Any) -> None:
    assert facts["secret"] == []


def test_the_handler_of_ctrl_c_stays_the_callers(facts: Any) -> None:
    assert facts["handler"]


def test_workers_run_our_interpreter(facts: Any) -> None:
    import sys

    assert facts["python"] == sys.executable


def test_a_second_session_at_the_same_time_is_refused(facts: Any) -> None:
    assert "MS044" in facts["second"]
    assert "StreamEnvironment(spark=" in facts["second"]


def test_an_adopted_session_stays_open(facts: Any) -> None:
    assert facts["adopted"] == 2


def test_closing_ends_the_jvm_and_removes_its_files(facts: Any) -> None:
    assert facts["gone"]


def test_a_log_that_grows_large_is_cut_into_files(facts: Any) -> None:
    assert set(facts["logs"]) == {"jvm.log", "jvm.1.log", "jvm.2.log"}
    assert max(facts["logs"].values()) < 12 << 20


def test_all_output_of_the_jvm_is_in_its_logs(facts: Any) -> None:
    assert "WARNING millstream jvm facts: a warning for the log" in facts["log"]
    assert "a line for the log" in facts["log"]


def test_the_log_is_json_lines_where_the_runs_is(facts: Any) -> None:
    lines = [json.loads(line) for line in facts["json"].splitlines()]
    failed, warned = [line for line in lines if line["logger"] == "facts"]
    assert (failed["level"], failed["event"], failed["pipeline"]) == ("error", "jvm", "shop")
    assert failed["message"] == 'two\nlines, "quoted"' and "IllegalStateException: it 'broke'" in failed["stack"]
    assert (warned["level"], warned["message"]) == ("warning", "no stack") and "stack" not in warned
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", warned["time"])
    assert facts["words"].endswith("WARNING facts: no stack"), "people read the message"


def test_the_terminal_stays_ours(facts: Any) -> None:
    assert (facts["stdout"], facts["stderr"]) == ([], "")


def test_the_working_directory_stays_clean(facts: Any) -> None:
    assert facts["files"] == ["logs", "script.py"]


def test_the_next_session_of_the_process_has_a_jvm_of_its_own(facts: Any) -> None:
    assert facts["again"] == 5
    assert facts["slots"] == "1"


def test_a_master_that_spark_does_not_know_is_one_clear_error(facts: Any) -> None:
    assert "MS044" in facts["nowhere"]
    assert "Master must" in facts["nowhere"]
    assert "\tat " not in facts["nowhere"]


def test_a_setting_that_only_submit_reads_takes_effect(facts: Any) -> None:
    assert facts["beside"] == "found"
    assert facts["note"] == "a = b: ü"


def test_files_that_may_hold_secrets_are_gone_once_they_are_read(facts: Any) -> None:
    assert "owner" in facts["scratch"]
    assert not {"jvm.args", "spark.properties", "handshake"} & set(facts["scratch"])


def test_a_jvm_that_has_died_can_be_closed_and_replaced(facts: Any) -> None:
    assert facts["last"] == 7
