"""A study with looks runs in the order that its seed fixes; whoever waits for another task comes after it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evalcore.engine.plan import _required_first
from evalcore.values.study import task_order
from evalcore.values.task import Task

NAMES = [f"t{n}" for n in range(8)]


def test_the_order_is_fixed_by_seed_and_names_alone() -> None:
    first = task_order(1, NAMES)
    assert first == task_order(1, reversed(NAMES)) and sorted(first) == NAMES
    assert first != NAMES and first != task_order(2, NAMES)
    kept = [name for name in task_order(1, [*NAMES, "more"]) if name != "more"]
    assert kept == first  # a task more moves no other


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=12), st.integers(0, 9))
def test_required_tasks_come_first_and_every_task_comes_once(pairs: list[tuple[int, int]], seed: int) -> None:
    needs = {name: tuple(NAMES[a] for a, b in pairs if a < b and NAMES[b] == name) for name in NAMES}
    tasks = {name: Task(name, {}, requires=needs[name]) for name in NAMES}
    order = list(_required_first(task_order(seed, NAMES), tasks))
    assert sorted(order) == NAMES
    assert all(order.index(needed) < order.index(name) for name in NAMES for needed in needs[name])


def test_without_requirements_the_order_is_as_drawn() -> None:
    tasks = {name: Task(name, {}) for name in NAMES}
    assert list(_required_first(task_order(4, NAMES), tasks)) == task_order(4, NAMES)
