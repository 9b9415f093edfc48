"""Options given in Python that do not fit are told as those of a file are: a code, the option, the nearest fix, all at once."""

from collections.abc import Callable

import pytest

from millstream import FileSource, KafkaSource, Settings, StreamEnvironment
from millstream.errors import Diagnostic, SpecError


def told(make: Callable[[], object]) -> list[Diagnostic]:
    with pytest.raises(SpecError) as caught:
        make()
    assert "pydantic" not in str(caught.value)
    return list(caught.value.diagnostics)


def test_a_misspelt_option_is_one_mistake() -> None:
    (found,) = told(lambda: FileSource(pth="x", format="json"))  # type: ignore[call-arg]
    assert (found.code, found.message, found.help) == ("MS006", "unknown option `pth` of `FileSource`", "did you mean `path`?")


def test_all_mistakes_come_at_once() -> None:
    found = told(lambda: FileSource(format="jsn", recursve=True))  # type: ignore[call-arg, arg-type]
    assert {each.code: each.help for each in found} == {"MS007": "", "MS008": "did you mean `json`?", "MS006": "did you mean `recursive`?"}


def test_settings_and_what_all_nodes_have_in_common() -> None:
    (setting,) = told(lambda: Settings(durability="fsyn"))  # type: ignore[arg-type]
    assert (setting.code, setting.help) == ("MS008", "did you mean `fsync`?")
    (common,) = told(lambda: StreamEnvironment().from_source(FileSource(path="x", format="json"), on_error="dropp"))  # type: ignore[arg-type]
    assert (common.message, common.help) == ("`on_error` of `file` cannot be 'dropp'", "did you mean `drop`?")


def test_a_secret_that_does_not_fit_is_not_shown() -> None:
    found = told(lambda: KafkaSource(bootstrap_servers="x:9092", topic="t", security={"protocol": "SASL_SSL", "password": ["hunter2"]}))
    assert "hunter2" not in str(found)


def test_settings_may_be_a_dictionary_and_are_checked() -> None:
    assert StreamEnvironment("p", settings={"retain_epochs": 7}).settings.retain_epochs == 7
    with pytest.raises(SpecError, match="`retain_epochs` of `Settings` must be a whole number"):
        StreamEnvironment("p", settings={"retain_epochs": "many"})
