"""Cells of a notebook can be run again; a program gives each name once."""

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from millstream import BlackholeSink, MillstreamError, PrintSink, StreamEnvironment

ROWS = [{"id": 1, "amount": 5}]
RunCell = Callable[..., StreamEnvironment]


@pytest.fixture
def run_cell(monkeypatch: pytest.MonkeyPatch) -> RunCell:
    """Run code as a cell of a notebook; every call is one run."""
    env, count = StreamEnvironment("p"), 0

    def run(code: str, cell: str | None = None) -> StreamEnvironment:
        nonlocal count
        count += 1
        metadata = {"cellId": cell} if cell else {}
        shell = SimpleNamespace(execution_count=count, get_parent=lambda: {"metadata": metadata}, user_ns={"In": ["", code]})
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))  # type: ignore[arg-type]  # stands for it
        exec(compile(code, f"<cell {count}>", "exec"), {"env": env, "ROWS": ROWS, "PrintSink": PrintSink, "BlackholeSink": BlackholeSink})
        return env

    return run


def nodes(env: StreamEnvironment) -> dict[str, Any]:
    return {node.name: getattr(node.component, "where", node.component.type) for node in env.topology().nodes}


def test_a_cell_that_runs_again_makes_its_nodes_anew_also_those_without_a_name(run_cell: RunCell) -> None:
    code = "env.from_rows(ROWS).filter('id > 1').to(PrintSink())"
    run_cell(code)
    assert list(nodes(run_cell(code))) == ["rows", "filter", "print"]


def test_an_edited_cell_replaces_what_it_made_before(run_cell: RunCell) -> None:
    run_cell("env.from_rows(ROWS).filter('amuont > 1').to(PrintSink())", "c1")
    env = run_cell("env.from_rows(ROWS).filter('amount > 1').to(BlackholeSink())", "c1")
    assert nodes(env) == {"rows": "memory", "filter": "amount > 1", "blackhole": "blackhole"}


def test_another_cell_takes_a_name_over_and_readers_follow(run_cell: RunCell) -> None:
    run_cell("env.from_rows(ROWS, name='o').filter('id > 1', name='x').to(PrintSink(), 'out')", "c1")
    env = run_cell("env.from_rows(ROWS, name='o2').filter('id > 2', name='x')", "c2")
    assert nodes(env)["x"] == "id > 2"
    assert [node.name for node in env.topology().up_to("out")] == ["o2", "x", "out"]


def test_a_name_twice_in_one_cell_is_refused(run_cell: RunCell) -> None:
    with pytest.raises(MillstreamError, match="MS020"):
        run_cell("for limit in (1, 2): env.from_rows(ROWS, name='o')")


def test_a_function_can_be_declared_again_by_its_cell(run_cell: RunCell) -> None:
    code = "def double(x): return x\nenv.function(double, returns='int64')"
    run_cell(code)
    assert [function.name for function in run_cell(code).topology().functions] == ["double"]


def test_a_node_that_fails_to_build_is_not_kept(run_cell: RunCell) -> None:
    env = run_cell("rows = env.from_rows(ROWS)", "c1")
    for mistake in ("filter('id >')", "dedup('id', within='soon')", "to(PrintSink(), on_error='ignore')", "map_batches(abs, batch_size=0)"):
        with pytest.raises(MillstreamError):
            run_cell(f"env._stream('rows').{mistake}", "c2")
    assert list(nodes(env)) == ["rows"]


def test_each_input_at_the_prompt_is_a_cell_of_its_own() -> None:
    env = StreamEnvironment("p")
    for where in ("id > 1", "id > 2"):
        exec(compile(f"env.from_rows(ROWS, name='o').filter('{where}', name='x')", "<stdin>", "exec"), {"env": env, "ROWS": ROWS})
    assert nodes(env) == {"o": "memory", "x": "id > 2"}


def test_a_program_gives_each_name_once() -> None:
    env = StreamEnvironment("p")
    env.from_rows(ROWS, name="o")
    with pytest.raises(MillstreamError, match="MS020"):
        env.from_rows(ROWS, name="o")
