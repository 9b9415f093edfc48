"""`${NAME}` is filled in after parsing; secrets are never shown."""

import json

from millstream.spec.loader import loads

TEXT = """
sources:
  orders:
    type: generator
    rows: %s
    fields: {id: {type: sequence}}
sinks:
  out: {type: file, from: orders, path: "%s", format: parquet}
settings:
  spark: {spark.hadoop.fs.s3a.secret.key: "%s"}
"""


def load(rows: str = "3", path: str = "out", secret: str = "x", **environ: str):
    return loads(TEXT % (rows, path, secret), environ=environ)


def test_a_variable_takes_the_type_of_its_value() -> None:
    assert load("${ROWS}", ROWS="12").require().node("orders").component.rows == 12


def test_a_default_is_used_when_the_variable_is_missing() -> None:
    assert load("${ROWS:-7}").require().node("orders").component.rows == 7
    assert load("${ROWS:-7}", ROWS="8").require().node("orders").component.rows == 8


def test_a_missing_variable_is_an_error_at_its_place() -> None:
    (error,) = [finding for finding in load(path="${DIRECTORY}/x").errors if finding.code == "MS011"]
    assert error.span.line == 8
    assert "DIRECTORY" in error.message


def test_a_variable_cannot_change_the_structure() -> None:
    topology = load(path="${P}", P='a", format: csv, x: "').require()
    assert topology.node("out").component.path == 'a", format: csv, x: "'


def test_a_doubled_dollar_stays() -> None:
    assert load(path="a/$${X}").require().node("out").component.path == "a/${X}"


def test_a_secret_is_shown_as_its_reference_only(monkeypatch) -> None:
    monkeypatch.setenv("TOKEN", "hunter2-and-more")
    topology = load(secret="secret://env/TOKEN").require()
    secret = topology.settings.spark["spark.hadoop.fs.s3a.secret.key"]
    everything = repr(topology) + topology.to_yaml() + json.dumps(topology.settings.model_dump(mode="json"))
    assert "hunter2" not in everything
    assert "secret://env/TOKEN" in everything
    assert secret.reveal() == "hunter2-and-more"


def test_a_secret_in_a_field_that_is_shown_is_refused() -> None:
    (error,) = load(path="secret://env/TOKEN").errors
    assert error.code == "MS013"


def test_a_variable_in_a_flow_map_is_quoted() -> None:
    text = "sources: {a: {type: generator, rows: %s, fields: {id: {type: sequence}}}}\nsinks: {b: {type: blackhole, from: a}}"
    (error,) = loads(text % "${ROWS}", environ={"ROWS": "5"}).errors
    assert error.help == 'inside {…} quote a variable: "${NAME}"'
    assert loads(text % '"${ROWS}"', environ={"ROWS": "5"}).require().node("a").component.rows == 5


def test_a_secret_can_stand_in_a_file(tmp_path) -> None:
    (tmp_path / "token").write_text("hunter2\n")
    topology = load(secret=f"secret://file/{tmp_path}/token").require()
    assert topology.settings.spark["spark.hadoop.fs.s3a.secret.key"].reveal() == "hunter2"


def test_a_secret_of_another_kind_is_refused() -> None:
    assert [error.code for error in load(secret="secret://vault/x").errors] == ["MS013"]
