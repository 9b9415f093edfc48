"""Messages name flags; who runs a pipeline from Python reads how Python asks for the same."""

import pytest

from millstream.plan.run_options import RunOptions


@pytest.mark.parametrize(
    ("flag", "option"),
    [
        ("`--again`", "`execute(RunOptions(again=True))`"),
        ("`--accept-target`", "`execute(RunOptions(accept_target=True))`"),
        ("`--reset orders`", '`execute(RunOptions(reset=("orders",)))`'),
        ("`--checkpoint`", "`--checkpoint`"),
    ],
)
def test_flags_become_options(flag: str, option: str) -> None:
    text = "restore it, or {} goes on"
    assert RunOptions().reword(text.format(flag)) == text.format(option)
    assert RunOptions(flags=True).reword(text.format(flag)) == text.format(flag)
