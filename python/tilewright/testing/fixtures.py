"""Pytest fixtures from lists of values, as TVM's testing.parameter."""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

_GROUP = "tilewright_parameter_group"


def parameter(*values: Any, ids: Sequence[str] | Callable[[Any], str] | None = None, by_dict: Any = None) -> Any:
    """Return a fixture with these values, for tests that have an argument of the name it is assigned to.

    Args:
        values: each gives a run of the test.
        ids: names of the values.
        by_dict: names and values, instead of both.
    """
    import pytest

    if by_dict is not None:
        if values or ids:
            raise TypeError("by_dict stands for the values and their names")
        ids, values = list(by_dict), tuple(by_dict.values())

    return pytest.fixture(params=values, ids=ids)(_value())


def _value() -> Any:
    """Return the function of a fixture; as an attribute of a class of tests it is a method."""

    def value(*owner: Any, request: Any) -> Any:
        return request.param

    return value


@dataclass(eq=False)
class _Group:
    """Fixtures that take their values together."""

    value_sets: Sequence[Sequence[Any]]
    ids: Sequence[str] | None


def parameters(*value_sets: Sequence[Any], ids: Sequence[str] | None = None) -> list[Any]:
    """Return several fixtures whose values go together: ``a, b = parameters((1, 2), (3, 4))``.

    Needs :func:`pytest_generate_tests` as a hook of pytest: in a ``conftest.py``, or in a plugin.
    """
    import pytest

    sizes = {len(values) for values in value_sets}
    if len(sizes) != 1:
        raise TypeError("each set of values has as many items as there are names")
    group = _Group(value_sets, ids)

    def make() -> Any:
        value = pytest.fixture(_value())
        setattr(value, _GROUP, group)
        return value

    return [make() for _ in range(sizes.pop())]


def pytest_generate_tests(metafunc: Any) -> None:
    """Hook of pytest: gives the fixtures of :func:`parameters` their values."""
    groups: dict[_Group, list[str]] = {}
    owners = [metafunc.module, *(metafunc.cls.__mro__[::-1] if metafunc.cls else ())]
    known_names = {name: value for owner in owners for name, value in vars(owner).items()}
    for name in metafunc.fixturenames:
        group = getattr(known_names.get(name), _GROUP, None)
        if group is not None:
            groups.setdefault(group, []).append(name)
    for group, names in groups.items():
        known = [name for name, value in known_names.items() if getattr(value, _GROUP, None) is group]
        positions = [known.index(name) for name in names]
        sets = [[values[position] for position in positions] for values in group.value_sets]
        metafunc.parametrize(names, sets, ids=group.ids, indirect=True)


def fixture(func: Any = None, *, cache_return_value: bool = False) -> Any:
    """Decorate a pytest fixture; with `cache_return_value` it is computed once and each test gets a copy of it."""
    import pytest

    if func is None:
        return functools.partial(fixture, cache_return_value=cache_return_value)
    if not cache_return_value:
        return pytest.fixture(func)
    cached = functools.cache(func)

    @functools.wraps(func)
    def cached_copy(*args: Any, **kwargs: Any) -> Any:
        return copy.deepcopy(cached(*args, **kwargs))

    return pytest.fixture(cached_copy)


def main() -> None:
    """Run the tests of the calling file."""
    import pytest

    file = sys._getframe(1).f_globals.get("__file__")
    if file is None:
        raise RuntimeError("testing.main() is called from no file")
    sys.exit(pytest.main([file, *sys.argv[1:]]))
