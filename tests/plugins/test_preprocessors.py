"""Preprocessors rewrite the text of a pipeline, one after the other; their options have places, and their secrets are not shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.cli.plan_text import settings_of
from millstream.spec.loader import Loaded, load

SHELF = Path(__file__).with_name("shelf.py")
PIPELINE = "sources:\n  numbers: {type: shelf.numbers, folder: ., total: <<total>>}\nsinks:\n  out: {type: blackhole, from: numbers}\n"
TELLING = """
import millstream

@millstream.plugin("telling")
class Telling(millstream.Preprocessor):
    '''Says a password.'''

    password: millstream.Secret

    def rewrite(self, text, pipeline):
        raise OSError(f"no login with {self.password.reveal()}")
"""


def loaded(folder: Path, preprocessors: str, text: str = PIPELINE, **environ: str) -> Loaded:
    (folder / "millstream.yaml").write_text(f"settings:\n  plugins: {SHELF}\n  preprocessors:\n{preprocessors}")
    (folder / "p.yaml").write_text(text)
    return load(folder / "p.yaml", environ=environ)


def total(found: Loaded) -> int:
    (source,) = found.require().sources
    return int(source.component.total)  # type: ignore[attr-defined]  # the source of the shelf


def test_they_run_in_their_order(tmp_path: Path) -> None:
    first, second = '    - {type: shelf.words, values: {total: "<<more>>"}}\n', '    - {type: shelf.words, values: {more: "7"}}\n'
    assert total(loaded(tmp_path, first + second)) == 7
    assert loaded(tmp_path, second + first).errors != ()


def test_the_pipeline_itself_may_name_them_if_it_is_yaml(tmp_path: Path) -> None:
    text = PIPELINE.replace("<<total>>", '"<<total>>"')
    own = f'settings:\n  plugins: {SHELF}\n  preprocessors: [{{type: shelf.words, values: {{total: "3"}}}}]\n'
    (tmp_path / "p.yaml").write_text(text + own)
    assert total(load(tmp_path / "p.yaml", environ={})) == 3


def test_plugins_can_be_named_in_the_environment(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE.replace("<<total>>", "4"))
    assert total(load(tmp_path / "p.yaml", environ={"MILLSTREAM__SETTINGS__PLUGINS": str(SHELF)})) == 4


@pytest.mark.parametrize(
    ("preprocessors", "code", "line", "help_"),
    [
        ("    - {type: shelf.word, values: {}}\n", "MS010", 4, "did you mean `shelf.words`?"),
        ("    - {type: shelf.words, value: {}}\n", "MS006", 4, "did you mean `values`?"),
        ("    - {type: shelf.words, values: 3}\n", "MS008", 4, ""),
    ],
    ids=["type", "option", "value"],
)
def test_mistakes_have_places(preprocessors: str, code: str, line: int, help_: str, tmp_path: Path) -> None:
    found = next(each for each in loaded(tmp_path, preprocessors).errors if each.code == code)
    assert found.span is not None
    assert (Path(found.span.file).name, found.span.line, found.help) == ("millstream.yaml", line, help_)


def test_a_secret_of_a_preprocessor_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGIN", "correct-horse")
    (tmp_path / "telling.py").write_text(TELLING)
    (tmp_path / "millstream.yaml").write_text(
        "settings:\n  plugins: telling.py\n  preprocessors: [{type: telling, password: secret://env/LOGIN}]\n"
    )
    (tmp_path / "p.yaml").write_text(PIPELINE)
    (found,) = load(tmp_path / "p.yaml", environ={}).errors
    assert found.code == "MS205"
    assert found.message.endswith("raised OSError: no login with ***")


def test_a_password_among_their_options_is_not_stored(tmp_path: Path) -> None:
    """The plan is stored in the checkpoint, and printed by `to_yaml` and by `millstream plan`."""
    (tmp_path / "telling.py").write_text(TELLING.replace("raise OSError", "return text; raise OSError"))
    text = PIPELINE.replace("<<total>>", "4").replace("shelf.numbers, folder: ., total: 4", "generator, fields: {n: {type: sequence}}")
    (tmp_path / "p.yaml").write_text(f"{text}settings:\n  plugins: telling.py\n  preprocessors: [{{type: telling, password: horse}}]\n")
    topology = load(tmp_path / "p.yaml", environ={}).require()
    for shown in (topology.to_yaml(), str(settings_of(topology))):
        assert "telling" in shown
        assert "horse" not in shown
