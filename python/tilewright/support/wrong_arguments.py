"""Turn the TypeError of a bound function into an ArgumentTypeError that names the argument.

The binding reports only that no signature matches, and lists signatures and types. The module table of the core passes
every such failure to :func:`explain`, which reports the arguments, the accepted types, and similar names.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import numbers
import re
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import FunctionType, UnionType
from typing import Any, ParamSpec, TypeVar

from tilewright import _core
from tilewright.errors import ArgumentError, ArgumentTypeError, Error
from tilewright.support.dtype_names import DTYPE_NAMES

#: codes of errors: wrong types, an unknown keyword, a text that is not a data type
TYPES, KEYWORD, DTYPE = "arguments/types", "arguments/keyword", "arguments/dtype"

P = ParamSpec("P")
R = TypeVar("R")

#: abstract classes of the numbers that a parameter of a type accepts
_NUMBERS: dict[Any, type] = {int: numbers.Integral, float: numbers.Real, complex: numbers.Complex}
_PACKAGES = re.compile(r"\b(tilewright\.(_core|ir|schedule)(\.script)?|collections\.abc|typing)\.")


def explain(text: str, args: Sequence[Any], keywords: Mapping[str, Any]) -> Error:
    """Return the error for a call that no signature matches.

    Args:
        text: message of the binding: the name, the signatures, the types.
        args: positional arguments, including `self`.
        keywords: keyword arguments.
    """
    for value in [*args, *keywords.values()]:
        if isinstance(value, _core.Expr):
            try:
                _core.const(value)
            except Error as error:  # an expression of numbers that no data type can hold
                return error
    called, signatures, has_self = parse_signatures(text)
    if called in ("__init__", "__new__") and args:
        called, has_self = args[0].__name__ if isinstance(args[0], type) else type(args[0]).__name__, True
    own = list(args[1:] if has_self else args)
    names = [re.findall(r"[(,] ?\*{0,2}(\w+):", signature) for signature in signatures]
    takes_any = any("**" in signature for signature in signatures)
    values = [*own, *keywords.values()]
    items = [item for value in values if isinstance(value, list | tuple) for item in value]
    return (
        (None if takes_any else _unknown_keyword(called, names, keywords))
        or _unknown_dtype(called, names, own, keywords)
        or _unfit_value(called, signatures, [*values, *items])
        or _wrong_types(called, signatures, own, keywords)
    )


def _unfit_value(called: str, signatures: Sequence[str], values: Iterable[Any]) -> Error | None:
    """Return the error for a number that no data type holds, or for what attributes cannot hold; None if all fit."""
    takes_attributes = any("dict[str, object]" in signature for signature in signatures)
    takes_constants = any("ExprLike" in signature or "Node" in signature for signature in signatures)
    for value in values:
        if isinstance(value, int) and takes_constants and not -(2**63) <= value < 2**64:
            return _error(TYPES, called, "an integer of more than 64 bits, which no data type holds", "write a float")
        strange = [key for key in value if not isinstance(key, str)] if isinstance(value, dict) else []
        if strange and takes_attributes:
            return _error(TYPES, called, f"{strange[0]!r:.80} is the name of an attribute", "names are strings")
        try:
            if isinstance(value, float) and takes_constants:
                _core.const(value)
            elif isinstance(value, dict) and takes_attributes:
                _core.as_attribute(value)
        except Error as error:
            return _error(TYPES, called, error.message, error.hint)
    return None


def parse_signatures(text: str) -> tuple[str, list[str], bool]:
    """Take apart nanobind's message of a call that no signature fits, such as::

        records(): incompatible function arguments. The following argument types are supported:
            1. records(self, hash: str, target: str) -> list[tilewright._core.Record]

        Invoked with types: tilewright._core.Database, int

    Returns:
        The name of the function ("records"); the parameters of each signature without `self` and without the names of
        packages ("(hash: str, target: str)"); whether a signature has `self`.
    """
    lines = [line.split(". ", 1)[1].strip() for line in text.splitlines() if line.startswith("    ")]
    signatures = [_PACKAGES.sub("", line[line.find("(") : line.rfind(" -> ")]) for line in lines]
    without_self = [re.sub(r"^\((self|cls: object)(, )?", "(", signature) for signature in signatures]
    return text.split("(", 1)[0], without_self, any(signature.startswith("(self") for signature in signatures)


def _unknown_keyword(called: str, names: Sequence[Sequence[str]], keywords: Mapping[str, Any]) -> Error | None:
    """Return the error for a keyword that no signature has; None if all are known."""
    every = list(dict.fromkeys(name for some in names for name in some))
    unknown = next((keyword for keyword in keywords if keyword not in every), None)
    if unknown is None:
        return None
    hint = _did_you_mean(unknown, every) or ("it takes " + ", ".join(every) if every else "it takes nothing")
    return _error(KEYWORD, called, f"{called} has no parameter '{unknown}'", hint)


def _unknown_dtype(
    called: str, names: Sequence[Sequence[str]], args: Sequence[Any], keywords: Mapping[str, Any]
) -> Error | None:
    """Return the error for a text that was passed as a data type and is not one; None if there is none."""
    for value in _dtypes(names, args, keywords):
        if not _core.is_dtype(value):
            return _error(DTYPE, called, f"'{value}' is not a data type", _did_you_mean(value, DTYPE_NAMES))
    return None


def _wrong_types(called: str, signatures: Sequence[str], args: Sequence[Any], keywords: Mapping[str, Any]) -> Error:
    """Return the error of arguments whose types fit no signature."""
    hint = "it takes " + " or ".join(signatures)
    if called == "Schedule" and any(isinstance(value, FunctionType) for value in args):
        hint = "it takes a program, which @T.prim_func above a Python function makes of it"
    return _error(TYPES, called, f"{called} cannot take ({_kinds(args, keywords)})", hint)


def explained(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that errors name the arguments whose types do not match the signature.

    Other errors, such as those from the user's code, are not changed.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except (TypeError, AttributeError, KeyError, ValueError, OverflowError) as error:
            if not _binds(function, args, kwargs):
                raise unexpected_arguments_error(function, error, kwargs) from None
            if isinstance(error, Error) or _has_matching_types(function, args, kwargs):
                raise
            own = list(args[1:] if "self" in inspect.signature(function).parameters else args)
            called, hint = _called(function), f"it takes {_signature(function)}"
            raise _error(TYPES, called, f"{called} cannot take ({_kinds(own, kwargs)}): {error}", hint) from error

    return call


def suggests_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that an unknown keyword raises an error that suggests similar ones."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            if _binds(function, args, kwargs):
                raise
            raise unexpected_arguments_error(function, error, kwargs) from None

    return call


def unexpected_arguments_error(
    function: Callable[..., Any], error: Exception, keywords: Mapping[str, Any]
) -> ArgumentTypeError:
    """Return the error for a call that does not match the signature: a suggestion for an unknown keyword, or Python's
    message, and the signature."""
    signature, called = _signature(function), _called(function)
    takes_any = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    unknown = next((name for name in keywords if name not in signature.parameters and not takes_any), None)
    if unknown is None:
        return _error(TYPES, called, str(error), f"it takes {signature}")
    hint = _did_you_mean(unknown, signature.parameters) or f"it takes {', '.join(signature.parameters) or 'nothing'}"
    return _error(KEYWORD, called, f"{called} has no parameter '{unknown}'", hint)


def no_program(what: str, given: object) -> ArgumentError:
    """Return the error for an argument that is not a program; `what` describes the accepted programs."""
    message = f"{what}, not {type(given).__name__}"
    hint = ""
    if isinstance(given, FunctionType):
        hint = f"{given.__name__} is a Python function; @T.prim_func above it makes a program of it"
    return ArgumentError.of("arguments/program", message, hint)


def _called(function: Callable[..., Any]) -> str:
    return function.__qualname__.removesuffix(".__init__")


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature as callers see it: without `self`, and with short types."""
    shown = inspect.signature(function)
    own = [p.replace(annotation=p.empty) for name, p in shown.parameters.items() if name != "self"]
    return shown.replace(parameters=own, return_annotation=shown.empty)


def _binds(function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
    """Return whether each parameter has a value and each value a parameter, as Python requires."""
    try:
        inspect.signature(function).bind(*args, **keywords)
    except TypeError:
        return False
    return True


def _has_matching_types(function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
    """Return whether all arguments have the types of the signature."""
    signature = inspect.signature(function)
    given = signature.bind(*args, **keywords).arguments
    for name, value in given.items():
        parameter = signature.parameters[name]
        values: Iterable[Any] = (value,)
        if parameter.kind is parameter.VAR_POSITIONAL:
            values = value
        elif parameter.kind is parameter.VAR_KEYWORD:
            values = value.values()
        hint = _type_of(parameter.annotation, function)
        if not all(fits(each, hint) for each in values):
            return False
    return True


def _type_of(annotation: Any, function: Callable[..., Any]) -> Any:
    """Return the type of an annotation; any type if its names exist only for type checkers."""
    try:
        return eval(annotation, inspect.unwrap(function).__globals__) if isinstance(annotation, str) else annotation
    except Exception:
        return Any


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value has the type of an annotation; undecidable cases count as true.

    NumPy's numbers are numbers. The items of collections, but not of iterators, are checked.
    """
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint is None or hint in _NUMBERS:
        return value is None if hint is None else isinstance(value, _NUMBERS[hint])
    if origin in (typing.Union, UnionType):
        return any(fits(value, part) for part in parts)
    if origin is typing.Literal:
        return any(type(value) is type(part) and value == part for part in parts)
    kind: Any = origin or hint
    if not isinstance(kind, type) or kind is inspect.Parameter.empty:
        return True
    if not _is_instance(value, kind):
        return False
    if isinstance(value, Mapping) and len(parts) == 2:
        return all(fits(key, parts[0]) and fits(each, parts[1]) for key, each in value.items())
    if kind is tuple and parts and parts[-1] is not ...:
        return len(value) == len(parts) and all(map(fits, value, parts))
    if parts and issubclass(kind, Collection) and kind.__module__ in ("builtins", "collections.abc"):
        return all(fits(each, parts[0]) for each in value)
    return True


def _is_instance(value: object, kind: type) -> bool:
    try:
        return isinstance(value, kind)
    except TypeError:  # a protocol
        return True


def _error(code: str, called: str, message: str, hint: str) -> ArgumentTypeError:
    error = ArgumentTypeError(f"[{code}] {message}" + (f"\n  hint: {hint}" if hint else ""))
    error.code, error.message, error.hint = code, message, hint
    error.called = called
    return error


def _kinds(args: Sequence[Any], keywords: Mapping[str, Any]) -> str:
    """Return the types of arguments as an error lists them: "int, out=None"."""
    values = [("", value) for value in args] + [(f"{name}=", value) for name, value in keywords.items()]
    return ", ".join(name + ("None" if value is None else type(value).__name__) for name, value in values)


def _dtypes(names: Sequence[Sequence[str]], args: Sequence[Any], keywords: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts that were passed as a data type."""
    for name in ("dtype", "type_annotation"):
        positions = {some.index(name) for some in names if name in some}
        values = [args[p] for p in positions if p < len(args)]
        values += [keywords[name]] if positions and name in keywords else []
        yield from (value for value in values if isinstance(value, str))


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.6)
    return "did you mean " + " or ".join(f"'{k}'" for k in close) + "?" if close else ""
