"""What is wrong with a plugin is said with its place, a fix and a code; pipelines that do not use it are not affected."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from millstream import registry
from millstream.errors import Diagnostic
from millstream.registry import Registry
from millstream.spec.loader import Loaded, load

CLASS = """
import pyarrow as pa
import millstream
{before}

@millstream.plugin("{name}"{more})
class Mine(millstream.ArrowTransform):
    '''Does nothing.'''

    {option}

    def process(self, batch, task):
        return batch
"""
PIPELINE = """\
sources:
  rows: {type: generator, rows: 3, fields: {n: {type: sequence}}}
transforms:
  mine: {type: NAME, from: rowsOPTIONS}
sinks:
  out: {type: blackhole, from: mine}
settings:
  plugins: [plugins.py]
"""
Check = Callable[..., Loaded]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Check a pipeline with a file of plugins beside it."""

    def go(
        name: str = "mine", *, before: str = "", more: str = "", option: str = "limit: int = 1", options: str = "", pipeline: str = PIPELINE
    ) -> Loaded:
        (tmp_path / "plugins.py").write_text(CLASS.format(name=name, before=before, more=more, option=option))
        path = tmp_path / "p.yaml"
        path.write_text(pipeline.replace("NAME", name).replace("OPTIONS", options))
        return load(path, environ={})

    return go


def only(loaded: Loaded) -> Diagnostic:
    (found,) = loaded.errors
    assert found.span is not None, found
    assert "^" in found.render()
    return found


def test_a_plugin_without_mistakes_passes(check: Check) -> None:
    assert check(options=", limit: 3").errors == ()


def test_options_have_places(check: Check) -> None:
    found = only(check(options=", limti: 3"))
    assert (found.code, found.span.line, found.help) == ("MS006", 4, "did you mean `limit`?")
    found = only(check(options=", limit: many"))
    assert (found.code, found.span.line, found.span.column) == ("MS008", 4, 41)


def test_a_name_that_no_plugin_has(check: Check) -> None:
    found = only(check("mine", pipeline=PIPELINE.replace("NAME", "mien")))
    assert (found.code, found.span.line, found.help) == ("MS010", 4, "did you mean `mine`?")


def test_a_plugin_that_fails_when_imported(check: Check, tmp_path: Path) -> None:
    loaded = check(before="import no_such_module")
    found = next(each for each in loaded.errors if each.code == "MS200")
    assert (found.span.line, found.span.column) == (8, 13)
    assert "ModuleNotFoundError: No module named 'no_such_module'" in found.message
    assert found.help.startswith("install what it needs (`pip install no_such_module`)")
    assert found.detail == f"{tmp_path / 'plugins.py'}:4\n    import no_such_module"


def test_a_plugin_that_is_not_python(check: Check) -> None:
    found = next(each for each in check(before="def :").errors if each.code == "MS200")
    assert "SyntaxError" in found.message
    assert found.detail.endswith("plugins.py:4\n    def :")


def test_a_plugin_for_another_version(check: Check) -> None:
    newer = next(each for each in check(more=", interface=99").errors if each.code == "MS202")
    assert "version 99" in newer.message
    assert newer.help.startswith("update Millstream")
    older = next(each for each in check(more=", interface=0").errors if each.code == "MS202")
    assert older.help == "install a newer version of plugins.py"


@pytest.mark.parametrize("taken", ["on_error", "primary_key", "description", "connection"])
def test_an_option_with_the_name_of_one_that_every_node_has(taken: str, check: Check, tmp_path: Path) -> None:
    found = next(each for each in check(option=f"{taken}: str = ''").errors if each.code == "MS203")
    assert (found.span.file, found.span.line, found.span.column) == (str(tmp_path / "plugins.py"), 10, 5)
    assert taken in found.help


@pytest.mark.filterwarnings("ignore:Field name")  # pydantic warns too, in its own words
@pytest.mark.parametrize("taken", ["process", "deterministic", "expensive"])
def test_an_option_with_the_name_of_a_method(taken: str, check: Check) -> None:
    found = next(each for each in check(option=f"{taken}: str = ''").errors if each.code == "MS203")
    assert "a name of its base class" in found.message


def test_the_reserved_names_are_those_of_nodes() -> None:
    from millstream.plan.nodes import WiredOptions
    from millstream.registry.loading import RESERVED
    from millstream.spec.problems import field_names

    assert {*WiredOptions.model_fields, *field_names(WiredOptions), "type"} == RESERVED


def test_a_file_that_is_not_there(check: Check) -> None:
    found = next(each for each in check(pipeline=PIPELINE.replace("plugins.py", "plugin.py")).errors if each.code == "MS204")
    assert (found.span.line, found.span.column) == (8, 13)
    assert found.help == "did you mean `plugins.py`?"


def test_a_file_without_plugins(check: Check, tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("x = 1\n")
    found = next(each for each in check(pipeline=PIPELINE.replace("plugins.py", "empty.py")).errors if each.code == "MS204")
    assert "@millstream.plugin" in found.help


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Entry points as installed packages have them."""
    real = registry.entry_points
    more: list[EntryPoint] = []
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "entry_points", lambda **wanted: [*real(**wanted), *(more if wanted["group"] == registry.GROUP else [])])
    before = set(sys.modules)

    def add(entry: str, module: str, text: str) -> None:
        (tmp_path / f"{module}.py").write_text(text)
        more.append(EntryPoint(entry, f"{module}:Mine", registry.GROUP))

    yield add
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_two_plugins_of_one_name(installed: Callable[..., None], check: Check) -> None:
    text = CLASS.format(name="acme.mine", before="", more="", option="limit: int = 1")
    installed("transform.acme.mine", "one_package", text)
    installed("transform.acme.mine", "other_package", text)
    found = only(check("acme.mine", pipeline=PIPELINE.partition("settings:")[0]))
    assert (found.code, found.span.line) == ("MS201", 4)
    assert "of one_package and of other_package" in found.message


def test_an_entry_point_with_another_name_than_the_plugin(installed: Callable[..., None], check: Check) -> None:
    installed("transform.acme.mine", "one_package", CLASS.format(name="mine", before="", more="", option="limit: int = 1"))
    found = only(check("acme.mine", pipeline=PIPELINE.partition("settings:")[0]))
    assert (found.code, found.span.line) == ("MS209", 4)
    assert '"transform.mine" = "one_package:Mine"' in found.help


def test_a_plugin_with_the_name_of_a_built_in_one(check: Check) -> None:
    found = only(check("filter", options=", limit: 1"))
    assert found.code == "MS201"
    assert "of millstream and of plugins.py" in found.message


def test_a_broken_plugin_does_not_matter_to_others(installed: Callable[..., None], check: Check) -> None:
    installed("transform.acme.broken", "broken_package", "raise ImportError('no')")
    assert check().errors == ()
    found = only(check("acme.broken", pipeline=PIPELINE.partition("settings:")[0]))
    assert (found.code, found.span.line, found.span.column) == ("MS200", 4, 16)
    assert found.detail.endswith("broken_package.py:1\n    raise ImportError('no')")
    assert Registry.installed().find("transform", "filter") is not None
    types = [name for name, _ in Registry.installed().usable("transform")]
    assert "filter" in types and "acme.broken" not in types


REWRITING = """
import millstream

@millstream.plugin("rewrite")
class Rewrite(millstream.Preprocessor):
    '''Rewrites.'''

    def rewrite(self, text, pipeline):
        return {result}
"""


@pytest.mark.parametrize(
    ("result", "said", "line"),
    [
        ("text.replace('sinks:', 'sinks: ]')", "did not return YAML", 5),
        ("3", "returned a int, not text", 3),
        ("text.no_such_method()", "raised AttributeError", 3),
    ],
)
def test_a_preprocessor_that_returns_no_yaml(result: str, said: str, line: int, tmp_path: Path) -> None:
    (tmp_path / "plugins.py").write_text(REWRITING.format(result=result))
    (tmp_path / "millstream.yaml").write_text("settings:\n  plugins: plugins.py\n  preprocessors: [{type: rewrite}]\n")
    (tmp_path / "p.yaml").write_text(PIPELINE.replace("NAME", "drop").replace("OPTIONS", ", columns: n"))
    found = only(load(tmp_path / "p.yaml", environ={}))
    assert (found.code, said in found.message) == ("MS205", True), found
    assert found.span.line == line
    assert "rewrite" in found.message


def test_mistakes_after_a_preprocessor_are_in_its_text(tmp_path: Path) -> None:
    (tmp_path / "plugins.py").write_text(REWRITING.format(result="'# written by a preprocessor\\n' + text.replace('<<n>>', 'nn')"))
    (tmp_path / "millstream.yaml").write_text("settings:\n  plugins: plugins.py\n  preprocessors: [{type: rewrite}]\n")
    text = PIPELINE.replace("NAME", "filter").replace("OPTIONS", ', where: "<<n>> > 1"')
    (tmp_path / "p.yaml").write_text(text)
    found = only(load(tmp_path / "p.yaml", environ={}))
    assert found.span.file == f"{tmp_path / 'p.yaml'} (after rewrite)"
    assert (found.code, found.span.line) == ("MS024", 5)


def test_a_side_output_sees_sources_only(tmp_path: Path) -> None:
    shelf = Path(__file__).with_name("shelf.py")
    text = PIPELINE.replace("NAME", "filter").replace("OPTIONS", ", where: n > 0").replace("plugins.py", str(shelf))
    (tmp_path / "p.yaml").write_text(f"{text}side_outputs:\n  seen: {{type: shelf.tally, from: row}}\n")
    found = only(load(tmp_path / "p.yaml", environ={}))
    assert (found.code, found.span.line, found.help) == ("MS012", 10, "did you mean `rows`?")


def test_a_file_of_plugins_may_import_what_is_beside_it(check: Check, tmp_path: Path) -> None:
    (tmp_path / "beside_the_plugins.py").write_text("LIMIT = 3\n")
    assert check(before="from beside_the_plugins import LIMIT", option="limit: int = LIMIT").errors == ()
    with_mistake = check(before="from beside_the_plugins import LIMITS")
    assert next(each for each in with_mistake.errors if each.code == "MS200").message.startswith("`plugins.py` fails when imported")


def test_a_schema_that_cannot_be_made_is_the_plugin_s_mistake(check: Check) -> None:
    found = only(
        check(
            option="""limit: int = 1

    def output_schema(self, schema):
        return schema.field("nope")
"""
        )
    )
    assert (found.code, found.node, found.span is not None) == ("MS206", "mine", True)
    assert "`output_schema` raised KeyError" in found.message
    assert "plugins.py:" in found.help
