"""Whatever an exception of user code says, and wherever its words come from, a secret is not among them."""

import traceback

import pytest

from millstream.worker.masking import mask

HIDDEN = ("hunter2",)


def chained() -> Exception:
    try:
        try:
            raise KeyError(HIDDEN[0])
        except KeyError as inner:
            raise ValueError("no such user") from inner
    except ValueError as error:
        return error


def noted() -> Exception:
    error = ValueError("no such user")
    error.add_note("the password is hunter2")
    return error


def circular() -> Exception:
    error = ValueError("hunter2")
    error.__cause__ = error
    return error


@pytest.mark.parametrize(
    "error",
    [
        ValueError("login with hunter2 failed"),
        OSError(2, "no such file", "/run/hunter2"),
        chained(),
        UnicodeDecodeError("x", b"", 0, 0, "hunter2"),
        noted(),
        circular(),
        ExceptionGroup("two", [ValueError("a"), ValueError("hunter2")]),
    ],
)
def test_it_is_hidden(error: Exception) -> None:
    told = mask(error, HIDDEN)
    assert "hunter2" not in "".join(traceback.format_exception(told))
    assert type(error).__name__ in f"{type(told).__name__}: {told}"


def test_other_exceptions_stay_as_they_are() -> None:
    error = ValueError("a", 1)
    assert mask(error, HIDDEN) is error and error.args == ("a", 1)
