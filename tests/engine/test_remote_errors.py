"""What a worker finds wrong reaches the user as it was said: the code, the sentence, whether it may pass, and no secret."""

from millstream.engine.failures import Translator
from millstream.errors import Diagnostic, RunError, TemporaryError
from millstream.secrets import Redactor, Secret
from millstream.worker.remote_errors import carry_errors


def _worker(message: str, temporary: bool) -> Exception:
    """What Spark makes of an error in a worker: text."""
    kind = TemporaryError if temporary else RunError
    try:
        with carry_errors("x"):
            raise kind(Diagnostic("MS110", message, help="wait"))
    except Exception as error:  # noqa: BLE001 — whatever comes out is text by then
        return RuntimeError(f"Traceback …\n{type(error).__name__}: {error}\nmillstream-node: x\n")


def test_what_may_pass_is_tried_again_and_what_may_not_is_not() -> None:
    passing = Translator([], "p", Redactor([])).translate(_worker("away", True), "x")
    assert isinstance(passing, TemporaryError)
    assert (passing.diagnostics[0].code, passing.diagnostics[0].message, passing.diagnostics[0].help) == ("MS110", "away", "wait")
    assert not isinstance(Translator([], "p", Redactor([])).translate(_worker("refused", False), "x"), TemporaryError)


def test_secrets_are_hidden_even_when_one_is_a_word_of_the_mark() -> None:
    translator = Translator([], "p", Redactor([Secret("hunter2"), Secret("millstream")]))
    found: RunError = translator.translate(_worker("user millstream, password hunter2", False), "x")
    assert "hunter2" not in found.diagnostics[0].message
    assert found.diagnostics[0].code == "MS110"
