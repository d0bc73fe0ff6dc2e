"""Export kernels as C libraries: a single kernel or all of a module, with functions that validate their arguments."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tilewright import _core
from tilewright.errors import ArgumentError
from tilewright.support.file_names import path_for_core

if TYPE_CHECKING:
    from tilewright.kernel.kernel import Kernel, _Program
    from tilewright.kernel.omitted_outputs import CallSignature

#: suffix of the names of functions that check the arrays of a kernel
VALIDATE = "_validate"


class Exported(NamedTuple):
    """The files that an export wrote; no library if the kernel is for another platform."""

    library: Path | None
    object: Path
    header: Path


def alone(program: _Program, own: str, name: str) -> _Program:
    """Return the program with `own` as its only public function, under a new name, and with its callees."""
    if program.code is None or (own == name and len(program.code.functions) == 1):
        return program
    every = dict(program.lowered.functions)
    key = next(key for key, function in every.items() if function.attrs.get("global_symbol") == own)
    kept = {key: every.pop(key).with_attr("global_symbol", name)}
    todo = list(kept.values())

    def keep(node: Any) -> None:
        if isinstance(node, _core.GlobalVar) and node.name_hint in every:
            kept[node.name_hint] = every.pop(node.name_hint).without_attr("global_symbol")
            todo.append(kept[node.name_hint])

    while todo:
        _core.visit(todo.pop(), keep)
    return _with_functions(program, kept)


def _with_validators(program: _Program) -> _Program:
    """Return the program with a validator for each public function that declares values of its arrays."""
    validators: dict[str, Any] = {}
    taken = {f.attrs.get("global_symbol") for f in program.lowered.functions.values()}
    for key, below in program.lowered.functions.items():
        if key in program.module.functions and "global_symbol" in below.attrs:
            written = program.module.functions[key].with_attr("global_symbol", below.attrs["global_symbol"])
            validator = _core.validator_of(written)
            if validator is not None and validator.attrs["global_symbol"] not in taken:
                own = f"{key}{VALIDATE}"
                while own in program.lowered.functions or own in program.module.functions:
                    own += "_"  # another function has this name in the module, and is exported under another one
                validators[own] = validator
    if not validators:
        return program
    checks = _core.lower(_core.Module(validators), program.target, "")[0]
    return _with_functions(program, {**dict(program.lowered.functions), **dict(checks.functions)})


def _with_functions(program: _Program, functions: dict[str, Any]) -> _Program:
    lowered = _core.Module(functions, dict(program.lowered.attrs))
    return program._replace(lowered=lowered, code=_core.compile_object(lowered, program.target))


def export(
    program: _Program, folder: str | os.PathLike[str], name: str, call_of: Callable[[_Program, Any], CallSignature]
) -> Exported:
    """Write library, object and header.

    Args:
        program: the program whose public functions are exported, with a validator for each one that has declarations.
        folder: folder to write to.
        name: name of the files.
        call_of: function that returns the call signature of a function's kernel.
    """
    place, name = path_for_core("folder", folder), path_for_core("name", name)
    if program.code is None:
        raise ArgumentError.of(
            "kernel/interpreted", "an interpreted kernel cannot be exported: compile it for 'native'"
        )
    from tilewright.kernel.omitted_outputs import signatures_to_json

    program = _with_validators(program)
    functions = program.module.functions
    calls = signatures_to_json(
        {
            str(below.attrs["global_symbol"]): call_of(program, functions[key])
            for key, below in program.lowered.functions.items()
            if "global_symbol" in below.attrs and key in functions
        }
    )
    library, code, header = _core.export_files(program.lowered, program.code, place, name, calls)
    return Exported(Path(library) if library else None, Path(code), Path(header))


def with_validators(kernels: dict[str, Kernel]) -> dict[str, Kernel]:
    """Return the kernels that are no validators of others, with their validators."""
    checks = {name: kernels[name + VALIDATE] for name in kernels if _is_validated(kernels, name)}
    for name, check in checks.items():
        kernels[name]._validator = check
    return {name: kernel for name, kernel in kernels.items() if name not in {f"{each}{VALIDATE}" for each in checks}}


def _is_validated(kernels: Mapping[str, Kernel], name: str) -> bool:
    """Return whether a kernel has a validator: it takes the same arguments, writes to none, and a library stores no
    call signature of it."""
    check = kernels.get(name + VALIDATE)
    return (
        check is not None
        and check._call is None
        and not any(written for *_, written in check.parameters)
        and [each[:2] for each in check.parameters] == [each[:2] for each in kernels[name].parameters]
    )
