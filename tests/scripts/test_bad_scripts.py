"""What is wrong with a script is said before anything runs, at its place in the pipeline's file."""

import textwrap
import time
from pathlib import Path

import pytest

from millstream.errors import Diagnostic
from millstream.scripts.program import Language, Program, ScriptFault, compile_script
from millstream.spec.loader import Loaded, load

PIPELINE = """
sources:
  orders: {type: memory, rows: [{id: 1, amount: 2.5}]}
transforms:
  priced:
    type: script
    from: orders
    %s
sinks:
  out: {type: blackhole, from: priced}
"""


def check(folder: Path, options: str) -> Loaded:
    path = folder / "p.yaml"
    path.write_text(PIPELINE % textwrap.indent(textwrap.dedent(options), "    ").strip(), encoding="utf-8")
    return load(path, environ={})


def only(folder: Path, options: str) -> Diagnostic:
    (found,) = check(folder, options).errors
    return found


def place(found: Diagnostic) -> tuple[int, int]:
    assert found.span is not None
    return found.span.line, found.span.column


@pytest.mark.parametrize(
    ("text", "code", "said", "at"),
    [
        ("function invoke(row) {\n  return row.id +;\n}", "MS191", "Unexpected token", (2, 18)),
        ("function invoke(row: {id: number) { return row; }", "MS191", "not TypeScript", (1, 33)),
        ("function invoke(row) {\n  const a = 1;\n  const a = 2;\n  return row;\n}", "MS191", "cannot be parsed", (3, None)),
        ("const A = 'abc\nfunction invoke(row) { return row; }", "MS191", "nterminated", (1, 11)),
        ("const A = 1;", "MS192", "no function", (0, None)),
        ("function a(row) { return row; }\nfunction b(row) { return row; }", "MS192", "several functions: `a`, `b`", (2, 10)),
        ("import x from 'y';\nfunction invoke(row) { return x(row); }", "MS192", "no modules", (1, 1)),
        ("// nothing", "MS192", "no function", (0, None)),
    ],
)
@pytest.mark.parametrize("inline", [True, False], ids=["inline", "file"])
def test_mistakes_have_their_place(tmp_path: Path, text: str, code: str, said: str, at: tuple[int, int | None], inline: bool) -> None:
    if inline:
        found = only(tmp_path, "script: |\n" + textwrap.indent(text, "  "))
    else:
        (tmp_path / "s.ts").write_text(text, encoding="utf-8")
        found = only(tmp_path, "file: s.ts")
    assert found.code == code
    assert said in found.message
    line, column = place(found)
    above, left = (8, 6) if inline else (0, 0)
    if at[0]:
        assert line == at[0] + above
    if at[1] is not None:
        assert column == at[1] + left


def test_plain_javascript_has_its_place_too(tmp_path: Path) -> None:
    found = only(tmp_path, "language: javascript\nscript: |\n  function invoke(row) {\n    return row.id +;\n  }")
    assert (found.code, place(found)[0]) == ("MS191", 11)


def test_javascript_takes_no_types(tmp_path: Path) -> None:
    assert only(tmp_path, "language: js\nscript: '(row: number) => row'").code == "MS191"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "MS170"),
        (b"\xff\xfe(row) => row", "MS001"),
        (b"x" * (5 << 20), "MS004"),
        (b"// " + b"x" * (1 << 20), "MS192"),
    ],
    ids=["empty", "not UTF-8", "5 MB", "1 MB"],
)
def test_files_that_are_no_scripts(tmp_path: Path, content: bytes, code: str) -> None:
    (tmp_path / "s.ts").write_bytes(content)
    found = only(tmp_path, "file: s.ts")
    assert found.code == code
    assert found.span is not None


def test_an_empty_script(tmp_path: Path) -> None:
    assert only(tmp_path, "script: ''").span is not None
    assert only(tmp_path, "script: '  '").code == "MS192"


def test_text_and_file_exclude_each_other(tmp_path: Path) -> None:
    (tmp_path / "s.ts").write_text("(row) => row")
    assert only(tmp_path, "file: s.ts\nscript: '(row) => row'").code == "MS008"


@pytest.mark.parametrize(("engine", "module", "extra"), [("quickjs", "quickjs_rs", "script"), ("deno", "deno", "deno")])
def test_a_missing_engine_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, module: str, extra: str) -> None:
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr("millstream.transforms.script.find_spec", lambda name: None if name == module else real(name))
    found = only(tmp_path, f"engine: {engine}\nscript: '(row) => row'")
    assert found.code == "MS196"
    assert f"pip install 'millstream[{extra}]'" in found.help


def test_variables_of_the_shell_are_not_replaced_in_scripts(tmp_path: Path) -> None:
    """`${name}` is a template literal's."""
    script = "script: |\n  function invoke(row) { const name = 'x'; return {id: row.id, amount: Number(`${name}`)}; }"
    assert check(tmp_path, script).errors == ()
    (tmp_path / "s.ts").write_text("(row) => { const name = 1; return {...row, amount: Number(`${name}`)}; }")
    loaded = check(tmp_path, "file: s.ts")
    assert loaded.errors == ()
    assert "${name}" in loaded.require().by_name["priced"].component.script  # type: ignore[attr-defined]  # a script


def test_elsewhere_they_are(tmp_path: Path) -> None:
    """The control."""
    assert [found.code for found in check(tmp_path, "script: '(row) => row'\ntimeout: ${UNSET}").errors] == ["MS011"]


def test_streamling_s_spelling_is_read(tmp_path: Path) -> None:
    options = """
    primary_key: id
    language: typescript
    schema: {id: int64, total: float64}
    script: |
      function process(row: any): any {
        return { id: row.id, total: row.amount * 2 };
      }
    """
    assert check(tmp_path, options).errors == ()
    assert check(tmp_path, options.replace("typescript", "ts")).errors == ()


def test_an_unknown_column_type_is_named(tmp_path: Path) -> None:
    assert "did you mean" in str(only(tmp_path, "script: '(row) => row'\nschema: {id: number}"))


@pytest.mark.parametrize("language", ["javascript", "typescript"])
@pytest.mark.parametrize(
    "text",
    ["(row) => " + "[" * 30_000 + "]" * 30_000, "(row) => " + "[" * 2000 + "]" * 2000, "(row) => " + "!" * 300_000 + "1", "`${" * 3000],
    ids=["30000 brackets", "2000 brackets", "300000 operators", "3000 templates"],
)
def test_what_is_nested_too_deeply_is_a_finding(text: str, language: Language) -> None:
    found = compile_script(text, language)
    assert isinstance(found, ScriptFault)
    assert found.code == "MS191"


def test_a_long_script_is_compiled_in_a_moment() -> None:
    table = "".join(f"  k{number}: {number},\n" for number in range(4000))
    head = f"const T: {{[k: string]: number}} = {{\n{table}}};"
    text = f"{head}\ninterface A {{ a: number }}\nfunction invoke(row: any) {{\n  return T[row.k];\n}}"
    started = time.process_time()
    made = compile_script(text, "typescript")
    assert time.process_time() - started < 5
    assert isinstance(made, Program)
    line = 1 + made.source[: made.source.index("return T[row.k]")].count("\n")
    assert made.lines.locate(line, 1)[0] == 4005


def test_a_type_check_that_does_not_end_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from millstream.scripts import type_check

    slow = tmp_path / "tsc"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr(type_check, "_SECONDS", 0.2)
    (found,) = type_check.check_types(str(slow), "(row) => row", "", "row")
    assert (found.code, "within 0.2 s" in found.message) == ("MS198", True)
