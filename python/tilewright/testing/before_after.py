"""Tests of transformations. Each test is a class with a program, a transformation, and the expected result."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tilewright import _core, ir
from tilewright.script import tir as T
from tilewright.testing.check import check_same


def _is_fixture(value: Any) -> bool:
    """Return whether a value is a pytest fixture."""
    import pytest

    made = pytest.fixture(lambda: None)
    return hasattr(value, "_pytestfixturefunction") if inspect.isfunction(made) else isinstance(value, type(made))


def _takes_self(function: Any) -> bool:
    return "self" in inspect.signature(function).parameters


def _is_error(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, BaseException)


class CompareBeforeAfter:
    """A test that compares what ``transform`` makes of ``before`` with ``expected``.

    ``before`` and ``expected`` are programs: a function of a script (decorated or not), a class of such functions (a
    module), a method that gives a program, or a fixture. ``expected`` may be a class of errors, which the
    transformation has to raise then. ``transform`` is a fixture or a method that gives a function of a module, or an
    object that is called with one.

    >>> class TestSplit(CompareBeforeAfter):
    ...     def before(A: T.Buffer(16)): ...
    ...     def expected(A: T.Buffer(16)): ...
    ...     def transform(self):
    ...         return lambda mod: ...
    """

    #: Whether programs that are written in the class are checked when they are read.
    check_well_formed = True
    before: Any
    expected: Any
    transform: Any

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, normalize in (("before", cls._program), ("expected", cls._expected), ("transform", cls._transform)):
            value = vars(cls).get(name, vars(cls).get(name.capitalize()))
            if value is not None and not _is_fixture(value):
                setattr(cls, name, normalize(value))

    @classmethod
    def _program(cls, value: Any) -> Any:
        """Return a fixture for the program that an attribute declares."""
        if isinstance(value, ir.PrimFunc | ir.Module):
            return cls._fixture(lambda self: value)
        if inspect.isclass(value):
            return cls._fixture(lambda self: cls._module(value))
        return cls._fixture(value if _takes_self(value) else lambda self: cls._function(value))

    @classmethod
    def _expected(cls, value: Any) -> Any:
        return cls._fixture(lambda self: value) if _is_error(value) else cls._program(value)

    @classmethod
    def _transform(cls, value: Any) -> Any:
        if inspect.isfunction(value):
            if not _takes_self(value):
                raise TypeError("transform is a method, a fixture or an object that is called with a module")
            return cls._fixture(value)
        return cls._fixture(lambda self: value)

    @staticmethod
    def _fixture(function: Callable[..., Any]) -> Any:
        import pytest

        return pytest.fixture(function)

    @classmethod
    def _function(cls, text: Any) -> Any:
        return T.prim_func(check_well_formed=cls.check_well_formed)(text)

    @classmethod
    def _module(cls, text: type) -> Any:
        functions = {
            name: value if isinstance(value, ir.PrimFunc) else cls._function(value)
            for name, value in vars(text).items()
            if not name.startswith("_")
        }
        return ir.Module(functions, {})

    @staticmethod
    def assert_same(got: Any, want: Any) -> None:
        """Raise an error if two programs differ by more than the names of their definitions and exports."""
        check_same(got, want)

    def test_compare(self, before: Any, expected: Any, transform: Any) -> None:
        """Run the test."""
        if _is_error(expected):
            import pytest

            with pytest.raises(expected):
                self._transformed(transform, before)
        else:
            self.assert_same(self._transformed(transform, before), expected)

    @staticmethod
    def _transformed(transform: Callable[[Any], Any], before: Any) -> Any:
        """Apply the transformation; a function becomes the only one of a module meanwhile."""
        if isinstance(before, _core.PrimFunc):
            return transform(ir.Module({"main": before}, {})).functions["main"]
        return transform(before)
