"""Messages name flags; who runs a pipeline from Python reads how Python asks for the same."""

import pytest

from millstream.plan.running import RunOptions


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
    assert RunOptions().worded(text.format(flag)) == text.format(option)
    assert RunOptions(flags=True).worded(text.format(flag)) == text.format(flag)
