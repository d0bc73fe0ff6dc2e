"""Static analysis of a program: its parameters, and the operations and memory traffic of one call."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from tilewright import _core, ir
from tilewright.errors import ArgumentError
from tilewright.support import limits
from tilewright.support.wrong_arguments import no_program
from tilewright.task.arguments import given_array
from tilewright.task.declared_values import as_declared_by_earlier_versions
from tilewright.task.mean_extents import mean_extents
from tilewright.task.parameter_names import by_label, extents_of, labels_of, scalars_of
from tilewright.task.precision import SIGNIFICANDS, operation_dtype
from tilewright.task.specialize import specialize
from tilewright.timing import Work


@dataclass(frozen=True)
class Parameter:
    """One parameter of a program.

    Attributes:
        name: label of the parameter, distinct from other labels.
        role: "input", "output" or "inout" (read before it is written).
        partly: whether a call may leave elements unwritten, depending on its data.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: str
    partly: bool = False


@dataclass(frozen=True)
class Task:
    """A program, with values for its symbolic sizes, and the results of its static analysis.

    Attributes:
        function: name of the function in the module.
        entry: name under which the kernel is exported.
        reduction_length: length of the longest sum that a result depends on; error bounds grow with its square root.
        work: operations and compulsory traffic of one call.
        sizes: values of the symbolic sizes and the scalar parameters, by name.
        cold: whether the caches hold other data before each call.
        given: digest of the integer arrays among the arguments (`digest_of_integers`); empty if there are none.
        sparse: the original module, if it has iterations over sparse axes; `module` has blocks over arrays instead.
    """

    module: ir.Module
    function: str
    entry: str
    parameters: tuple[Parameter, ...]
    work: Work
    reduction_length: int
    sizes: Mapping[str, float] = field(default_factory=dict)
    cold: bool = False
    given: str = ""
    sparse: ir.Module | None = None

    @property
    def scalars(self) -> Mapping[str, tuple[str, float]]:
        """Return the data type and the value of each scalar parameter, in order."""
        return {name: (var.dtype, self.sizes[name]) for name, var in scalars_of(self.program).items()}

    def call(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by label, in the order of the parameters: `arrays`, and the scalars."""
        function, scalars = self.program, self.scalars
        tensors = iter(self.parameters)
        arguments: dict[str, Any] = {}
        for label, param in zip(labels_of(function), function.params, strict=True):
            if param in function.buffer_map:
                name = next(tensors).name
                arguments[name] = arrays[name]
            else:
                arguments[label] = scalars[label][1]
        return arguments

    @property
    def sized(self) -> Task:
        """Return the task specialized for calls with its sizes and scalars."""
        if not self.sizes:
            return self
        function = _sized(self.program, self.sizes, _counts(self.sparse))
        module = ir.Module({**self.module.functions, self.function: function})
        return replace(self, module=module, sizes={}, sparse=None)

    @property
    def program(self) -> ir.PrimFunc:
        """Return the function of the task."""
        return _prim_func(self.module, self.function)

    @cached_property
    def _operation_dtype(self) -> str | None:
        return operation_dtype(self.program)

    def accumulation_dtype(self, parameter: Parameter) -> str:
        """Return the data type whose roundings depend on the order of terms, for the tolerance of a result: of an
        output of low precision it is that of the sums, if these have a higher one."""
        own, used = parameter.dtype, self._operation_dtype
        if used is None or "float" not in own:
            return own
        return max(own, used, key=lambda dtype: SIGNIFICANDS[dtype])


def _prim_func(module: ir.Module, name: str) -> ir.PrimFunc:
    function = module.functions[name]
    if not isinstance(function, ir.PrimFunc):
        raise ArgumentError.of(
            "tune/no-function", f"the function {name} is not a tensor program, so it cannot be tuned"
        )
    return function


def with_public_name(function: ir.PrimFunc) -> ir.PrimFunc:
    """Return the function with a name for callers: "main" unless it has one."""
    return function if "global_symbol" in function.attrs else function.with_attr("global_symbol", "main")


def module_of(program: ir.PrimFunc | ir.Module) -> ir.Module:
    """Return a program in the form that databases store: sparse iterations are lowered to blocks over arrays."""
    return _core.lower_sparse_iterations(_module_as_written(program))


def _module_as_written(program: ir.PrimFunc | ir.Module) -> ir.Module:
    if isinstance(program, ir.PrimFunc):
        return ir.Module({"main": program})
    if not isinstance(program, ir.Module):
        raise no_program("a database knows functions and modules", program)
    return program


def sparse_module_of(program: ir.PrimFunc | ir.Module) -> ir.Module | None:
    """Return the original module of a program that has iterations over sparse axes; None for other programs."""
    module = _module_as_written(program)
    return module if any(function.axes for function in _functions_of(module)) else None


def only_function(module: ir.Module) -> tuple[str, ir.PrimFunc] | None:
    """Return the only function of a module and its name; None if there are several, or it is not a PrimFunc."""
    for name, function in module.functions.items():
        if len(module.functions) == 1 and isinstance(function, ir.PrimFunc):
            return name, function
    return None


#: attribute that declares that buffers do not overlap; searches add it, and schedules do not depend on it
_PROMISE = "tir.noalias"


def one_program(program: ir.PrimFunc | ir.Module) -> ir.Module:
    """Return the canonical module of a program: its only function as "main", without the attribute that its buffers do
    not overlap. It is equal for a function, for a module with that function under any name, and for programs of a
    search."""
    module = module_of(program)
    only = only_function(module)
    return module if only is None else ir.Module({"main": _without_promise(only[1])})


def _without_promise(function: ir.PrimFunc) -> ir.PrimFunc:
    return function.without_attr(_PROMISE) if _PROMISE in function.attrs else function


def program_keys(program: ir.PrimFunc | ir.Module) -> list[str]:
    """Return the keys of a program in databases: the present one first, then those of earlier versions, whose keys
    depended on the function's name in the module and on its attributes. Earlier versions also declared less of the
    structure that lowered iterations read."""
    module = module_of(program)
    modules = [module]
    if sparse_module_of(program) is not None:
        modules.append(ir.Module({name: as_declared_by_earlier_versions(f) for name, f in module.functions.items()}))
    forms = []
    for each in modules:
        forms.append(one_program(each))
        if (only := only_function(each)) is not None:
            name, function = only
            bare = _without_promise(function)
            names = dict.fromkeys(["main", str(function.attrs.get("global_symbol", "main")), name])
            forms += [ir.Module({n: f}) for n in names for f in (bare, bare.with_attr(_PROMISE, True), function)]
    return list(dict.fromkeys(_core.structural_hash(form) for form in forms))


def name_of(program: ir.PrimFunc | ir.Module) -> str:
    """Return the name of a program's kernel, or of the first function of a module with several."""
    module = module_of(program)
    only = only_function(module)
    name = None if only is None else only[1].attrs.get("global_symbol")
    return str(name or next(iter(module.functions), "main"))


def task_of(
    program: ir.PrimFunc | ir.Module,
    sizes: Mapping[str, float] | None = None,
    *,
    cold: bool = False,
    labels: Sequence[str] | None = None,
) -> Task:
    """Analyze a program.

    Args:
        program: the program to analyze.
        sizes: values of the symbolic sizes and the scalar parameters, by name.
        cold: whether the caches hold other data before each call.
        labels: labels of the arrays, if the program was derived from one with these labels.

    Raises:
        tilewright.ArgumentError: the module has several functions and none is called "main"; `sizes` lacks a symbolic
            size or a scalar, or has an unknown name or a value that does not fit.
    """
    sizes = {name: value.item() if isinstance(value, np.generic) else value for name, value in (sizes or {}).items()}
    module = module_of(program)
    names = list(module.functions)
    function = names[0] if len(names) == 1 else "main"
    if function not in names:
        raise ArgumentError.of(
            "tune/which-function",
            f"the module has the functions {', '.join(names)}; which one is to be tuned?",
            "call one of them main, or pass that function alone",
        )
    program_function = _prim_func(module, function)
    entry = program_function.attrs.get("global_symbol")
    if entry is None:
        raise ArgumentError.of(
            "tune/no-function", f"the function {function} is private, so no kernel of that name exists"
        )
    sparse = sparse_module_of(program)
    facts = _core.analyze_workload(_sized(program_function, sizes, _counts(sparse)))
    partly = set(facts["partly_written"])
    parameters = tuple(
        Parameter(label, dtype, tuple(shape), role, position in partly)
        for position, (label, (_, dtype, shape, role)) in enumerate(
            zip(labels or array_labels_of(program_function), facts["params"], strict=True)
        )
    )
    work = _work_of(facts, [p.dtype for p in parameters])
    length = int(facts["reduction_length"])
    return Task(*(module, function, entry, parameters, work, length, sizes, cold), sparse=sparse)


def by_buffer(program: ir.PrimFunc | ir.Module, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments by the labels of their parameters. In `inputs`, they may be named by position or by the handle
    of a buffer.

    Raises:
        tilewright.ArgumentError: several parameters have a name that is used, or no parameter has that position.
    """
    limits.kind("inputs", inputs, Mapping, "a dict of arrays by the names of parameters, or None")
    functions = _functions_of(program)
    if len(functions) > 1 and any(isinstance(key, int) for key in inputs):
        raise ArgumentError.of(
            "arguments/position",
            "inputs are given by position, and the module has several functions",
            "tune one function at a time, or give inputs by name",
        )
    found = dict(inputs)
    for function in functions:
        found = by_label(function, found)
    return {str(key): value for key, value in found.items()}


def check_inputs(program: ir.PrimFunc | ir.Module, inputs: Mapping[str, Any]) -> None:
    """Refuse arguments with names that no function of the program has as parameter or symbolic size.

    Args:
        program: program that the arguments are for.
        inputs: arguments by label; `by_buffer` returns them.

    Raises:
        tilewright.ArgumentError: an argument has an unknown name.
    """
    known = names_of(program)
    if unknown := sorted(set(inputs) - set(known)):
        raise ArgumentError.of(
            "arguments/inputs",
            f"inputs has {', '.join(unknown)}, but the parameters are {', '.join(known)}",
            _meant(unknown[0], known),
        )


def names_of(program: ir.PrimFunc | ir.Module) -> list[str]:
    """Return the names that arguments may have: those of parameters and of symbolic sizes."""
    functions = _functions_of(program)
    parameters = [label for f in functions for label in [*array_labels_of(f), *scalars_of(f)]]
    return list(dict.fromkeys([*parameters, *(label for f in functions for label in extents_of(f))]))


def array_labels_of(function: ir.PrimFunc) -> list[str]:
    """Return the labels of the array parameters, in order."""
    labeled = zip(labels_of(function), function.params, strict=True)
    return [label for label, param in labeled if param in function.buffer_map]


def _meant(name: str, known: Sequence[str]) -> str:
    close = limits.closest(name, known)
    return close if close.startswith("did you mean") else "arrays and numbers are given by the name of the parameter"


def sizes_of(program: ir.PrimFunc | ir.Module, arguments: Mapping[str, Any]) -> dict[str, float]:
    """Return the values of symbolic sizes, taken from the arrays, and of the scalars among the arguments."""
    sizes: dict[str, float] = {}
    for function in _functions_of(program):
        names = {extent: name for name, extent in extents_of(function).items()}
        for label, param in zip(labels_of(function), function.params, strict=True):
            if param in function.buffer_map and label in arguments:
                shape = given_array(label, arguments[label]).shape
                extents = zip(function.buffer_map[param].shape, shape, strict=False)
                sizes |= {names[extent]: int(size) for extent, size in extents if isinstance(extent, ir.Var)}
        sizes |= {name: arguments[name] for name in scalars_of(function) if name in arguments}
    return sizes


def open_sizes_of(program: ir.PrimFunc | ir.Module) -> dict[str, float]:
    """Return the symbolic sizes and scalars of a program by name, in the order of its parameters, each with an example
    value for hints."""
    variables = {name: var for f in _functions_of(program) for name, var in (extents_of(f) | scalars_of(f)).items()}
    return {name: _shown(variable.dtype) for name, variable in variables.items()}


def _shown(dtype: str) -> float:
    if "int" not in dtype:
        return 1 if dtype == "bool" else 1.5
    return min(1000, np.iinfo(dtype).max)


def _functions_of(program: ir.PrimFunc | ir.Module) -> list[ir.PrimFunc]:
    functions = [program] if isinstance(program, ir.PrimFunc) else list(program.functions.values())
    return [function for function in functions if isinstance(function, ir.PrimFunc)]


def _counts(sparse: ir.Module | None) -> set[str]:
    """Return the names of sizes that count the positions of sparse axes, which may be 0."""
    functions = [] if sparse is None else _functions_of(sparse)
    axes = [axis for function in functions for axis in function.axes if axis.indptr is not None]
    return {axis.nnz.name for axis in axes if isinstance(axis.nnz, ir.Var)}


def _sized(function: ir.PrimFunc, sizes: Mapping[str, float], counts: Collection[str] = ()) -> ir.PrimFunc:
    extents, scalars = extents_of(function), scalars_of(function)
    everything = extents | scalars
    if unknown := set(sizes) - set(everything):
        known = f"are {', '.join(sorted(everything))}" if everything else "are none"
        raise ArgumentError.of(
            "tune/sizes",
            f"sizes has {', '.join(sorted(map(str, unknown)))}, but the sizes that the program leaves open {known}",
        )
    for name, value in sizes.items():
        check_value(name, value, everything[name], least=1 if name in extents and name not in counts else None)
    if missing := [name for name in everything if name not in sizes]:
        example = ", ".join(f'"{name}": {_shown(everything[name].dtype)}' for name in missing)
        code, what = "tune/scalar-parameter", f"parameter '{missing[0]}' is a scalar"
        if missing[0] in extents:
            size = extents[missing[0]]
            shapes = zip(labels_of(function), map(function.buffer_map.get, function.params), strict=True)
            of = next(label for label, b in shapes if b is not None and any(size.same_as(e) for e in b.shape))
            code, what = "tune/symbolic-shape", f"the shape of '{of}' is not constant"
        raise ArgumentError.of(
            code,
            f"{what}, and no usual value of {', '.join(missing)} is known",
            f"pass it: tw.tune(program, sizes={{{example}}}), or inputs=, "
            + ("which may hold scalars, too" if missing[0] in scalars else "whose shapes determine it"),
        )
    if not sizes:
        return function
    return specialize(function, {everything[name]: value for name, value in sizes.items()})


def check_value(name: str, value: Any, variable: ir.Var, *, least: int | None = None, where: str = "sizes") -> None:
    """Check that a size or a scalar can have a value.

    Args:
        name: name of the size or scalar.
        value: the value.
        variable: variable of the program.
        least: the least value of a size: 1 to tune for, 0 to verify. None for a scalar.
        where: name of the argument that holds the value.

    Raises:
        tilewright.ArgumentError: the value has another kind, or does not fit the data type.
    """
    dtype = np.dtype(variable.dtype if variable.dtype != "bfloat16" else "float32")
    whole = dtype.kind in "iub"
    if not isinstance(value, int | np.integer | np.bool_ if whole else int | float | np.number):
        kind = "an integer" if whole else "a number"
        raise ArgumentError.of(
            "tune/sizes", f"{where}[{name!r}] is {value!r}; '{name}' of type {variable.dtype} is {kind}"
        )
    if least is not None and value < least:
        what = "a size to tune for" if least else "a size"
        raise ArgumentError.of("tune/sizes", f"{where}[{name!r}] is {value}; {what} is at least {least}")
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max) if whole else (value, value)
    if not low <= value <= high and value == value:
        raise ArgumentError.of(
            "tune/sizes", f"{where}[{name!r}] is {value}, which is no {variable.dtype}: these are from {low} to {high}"
        )


def work_of(function: ir.PrimFunc, args: Sequence[Any]) -> Work:
    """Return the operations and traffic of a call with these arguments, which determine symbolic sizes and scalars."""
    sizes: dict[ir.Var, int] = {}
    dtypes: list[str] = []
    for param, value in zip(function.params, args, strict=True):
        buffer = function.buffer_map.get(param)
        if buffer is None:
            if (number := limits.index_of(value)) is not None:
                sizes[param] = number
            continue
        dtypes.append(buffer.dtype)
        shape = value.shape if hasattr(value, "shape") else np.shape(value)
        sizes |= {extent: n for extent, n in zip(buffer.shape, shape, strict=False) if isinstance(extent, ir.Var)}
    constants: dict[Any, Any] = {var: ir.IntImm(var.dtype, n) for var, n in sizes.items()}
    sized = _core.substitute(function, constants)
    assert isinstance(sized, ir.PrimFunc)
    facts = _core.analyze_work(sized, mean_extents(sized, args))
    return _work_of(facts, dtypes)


def _work_of(facts: Mapping[str, Any], dtypes: Sequence[str]) -> Work:
    """Return the work in the prevailing kind of operations: a product of bytes may end with a few operations on
    floats."""
    floats = [dtype for dtype in dtypes if "float" in dtype]
    if floats and facts["flops"] >= facts["int_ops"]:
        return Work(facts["flops"], facts["bytes"], floats[0], facts["exact"])
    small = any(dtype in ("int8", "uint8") for dtype in dtypes)
    return Work(facts["int_ops"], facts["bytes"], "int8" if small else "int32", facts["exact"])
