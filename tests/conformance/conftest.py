"""Says in the run's summary when the golden data is not there."""

from typing import Any

from tests.conformance.goldens import HOME, names


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if not names():
        terminalreporter.write_line(f"conformance: no golden data in {HOME}; set MILLSTREAM_CONFORMANCE to run those tests")
