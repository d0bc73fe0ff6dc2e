"""Run the user's file, and find the programs and spaces that it defines."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tilewright.errors import ArgumentError, Error, ScriptError
from tilewright.support import limits
from tilewright.support.user_lines import place_of, render_line

if TYPE_CHECKING:
    from tilewright.search import Space


@dataclass(frozen=True)
class NamedSpace:
    """A space of a script.

    Attributes:
        name: stem of the exported files.
        program: Python expression that evaluates to the program, such as lib["add"].
        space: the space.
    """

    name: str
    program: str
    space: Space


def load_script(file: Path) -> ModuleType:
    """Run the user's file as a module.

    Raises:
        tilewright.ScriptError: the file does not exist, or running it raises an error; the message shows the user's own
            line.
    """
    if file.is_dir():
        raise ScriptError.of(
            "command/file", f"{file} is a folder", "name the Python file in it that defines the program"
        )
    if not file.is_file():
        raise ScriptError.of("command/file", f"{file}: no such file", f"the path is relative to {Path.cwd()}")
    # A distinct name in sys.modules, so that a script called json.py does not replace another module.
    spec = importlib.util.spec_from_file_location(f"tilewright_script_{file.stem}", file.resolve())
    if spec is None or spec.loader is None:
        raise ScriptError.of("command/file", f"{file} is not a Python file", "its name has to end in .py")
    # The exception that Python raises for NUL bytes depends on its version.
    if b"\0" in file.read_bytes():
        raise ScriptError.of(
            "command/file", f"{file} cannot be read as Python: it holds null bytes", "it has to be text in UTF-8"
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    folder = str(file.resolve().parent)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except Error:
        raise
    except (SyntaxError, UnicodeDecodeError) as error:
        raise _not_python(file, error) from None
    except SystemExit as error:
        message = f"the script called sys.exit({error.code!r}) while it was loaded"
        hint = 'move code that should not run on import below: if __name__ == "__main__":'
        raise ScriptError.of("command/script", f"{message}{_below(place_of(error))}", hint) from None
    except Exception as error:
        message = f"the script raised {type(error).__name__}: {error}"
        raise ScriptError.of("command/script", message + _below(place_of(error))) from error
    finally:
        with contextlib.suppress(ValueError):  # the script may have put other folders before it, or removed it
            sys.path.remove(folder)
    return module


def _not_python(file: Path, error: SyntaxError | UnicodeDecodeError) -> ScriptError:
    if isinstance(error, UnicodeDecodeError) or not error.lineno:
        return ScriptError.of("command/file", f"{file} cannot be read as Python: {error}", "it has to be text in UTF-8")
    column, line = error.offset or 1, error.lineno
    end = error.end_offset or 0
    if (error.end_lineno or line) != line or end <= column:
        end = column + 1
    name = error.filename or str(file)
    return ScriptError.of("command/file", error.msg + _below(render_line(name, line, column, end)))


def _below(place: str) -> str:
    return f"\n{place}" if place else ""


def programs_of(script: ModuleType) -> dict[str, Any]:
    """Return the programs that a script defines, by name, in the order of their definition."""
    from tilewright import ir

    return {
        name: value
        for name, value in vars(script).items()
        if isinstance(value, (ir.PrimFunc, ir.Module)) and not name.startswith("_")
    }


def select_program(script: ModuleType, file: Path, name: str | None) -> tuple[str, Any]:
    """Return the program called `name`, which may be a function of a module, or the only program."""
    programs = programs_of(script)
    if not programs:
        raise _no_program(file)
    if name is None:
        if len(programs) == 1:
            return next(iter(programs.items()))
        raise ArgumentError.of(
            "command/program", f"{file} has the programs {', '.join(programs)}", "choose one with --program"
        )
    if part := _part_called(file, name, programs):
        return _file_name(part), _parts_of(programs)[part]
    check_program(file, name, [*programs, *_parts_of(programs)])
    return name, programs[name]


def programs_together(script: ModuleType, file: Path, names: Sequence[str] | None) -> Any:
    """Return several programs as one module: those in `names`, or all programs of the script that are not private.

    Raises:
        tilewright.ArgumentError: a program does not exist, or two kernels would have the same name.
    """
    from tilewright import ir

    if names is None:
        chosen = {name: each for name, each in programs_of(script).items() if not _is_private(each)}
        if not chosen:
            raise _no_program(file)
    else:
        chosen = dict(select_program(script, file, name) for name in names)
    functions: dict[str, Any] = {}
    for name, program in chosen.items():
        own = {name: program} if isinstance(program, ir.PrimFunc) else dict(program.functions)
        for key, function in own.items():
            if key in functions:
                raise ArgumentError.of(
                    "command/program", f"two programs of {file} have a function {key}", "compile them one by one"
                )
            functions[key] = function
    symbols = [f.attrs["global_symbol"] for f in functions.values() if "global_symbol" in f.attrs]
    for key, function in functions.items():
        # Functions with the same global_symbol, as from a factory, are renamed to their names in the file.
        if symbols.count(function.attrs.get("global_symbol")) > 1:
            functions[key] = function.with_attr("global_symbol", key)
    return ir.IRModule(functions)


def check_program(file: Path, name: str, known: Iterable[str], spaces: Iterable[str] = ()) -> None:
    """Refuse a name that no program of the script has.

    Args:
        file: file name, for messages.
        name: name of the program.
        known: names of the script's programs.
        spaces: names of the script's spaces.

    Raises:
        tilewright.ArgumentError: no program has this name.
    """
    if name not in (names := list(known)):
        hint = f"{name} is a space: --space {name}" if name in spaces else limits.closest(name, names)
        raise ArgumentError.of("command/program", f"{file} has no program called {name}", hint)


def spaces_of_script(
    script: ModuleType, file: Path, only: str | None, program: str | None, heuristic_space: Callable[[Any], Space]
) -> list[NamedSpace]:
    """Return the spaces of a script in the order of their definition, then heuristic spaces for programs without a
    space: one for each function of a module. Private functions get none.

    Args:
        script: the loaded script.
        file: file name, for messages.
        only: name of the wanted spaces; None for all.
        program: name of the program, or of a function of a module, whose spaces are wanted; None for all.
        heuristic_space: function that returns a space for a program.

    Raises:
        tilewright.ScriptError: the script defines no program.
        tilewright.ArgumentError: no space is called `only`, or no program is called `program`.
    """
    from tilewright.search import Space

    written = {id(value): (name, value) for name, value in vars(script).items() if isinstance(value, Space)}
    programs = programs_of(script)
    found: list[_Candidate] = []
    for variable, space in written.values():
        part = next((name for name, value in programs.items() if value is space.program), None)
        found.append(_Candidate(part, variable, space))
    covered = [space.program for _, space in written.values()]
    # Skip private functions unless one is named or there are no others; compiling it then reports why.
    tuned = {name: value for name, value in programs.items() if name == program or not _is_private(value)}
    for name, value in (tuned or programs).items():
        if not any(value is program for program in covered):
            found += [
                _Candidate(part, part, heuristic_space(function)) for part, function in _functions_of(name, value)
            ]
    if program is not None:
        part = _part_called(file, program, programs)
        spaces = [space.name for _, space in written.values()]
        if part is None:
            check_program(file, program, [*programs, *_parts_of(programs)], spaces)
        found = [candidate for candidate in found if candidate.belongs_to(program, part)]
    if not found:
        raise _no_program(file)
    names = [candidate.space.name for candidate in found]
    if only is not None and only not in names:
        hint = limits.closest(only, names, ", ".join(dict.fromkeys(names)))
        raise ArgumentError.of("command/space", f"{file} has no space called {only}", hint)
    files = [_file_name(candidate.part) if candidate.part else candidate.space.name for candidate in found]
    return [
        NamedSpace(
            # Two spaces of one program must be exported to different files.
            name if files.count(name) == 1 else f"{name}_{candidate.space.name}",
            candidate.part or f"{candidate.variable}.program",
            candidate.space,
        )
        for name, candidate in zip(files, found, strict=True)
        if only is None or candidate.space.name == only
    ]


@dataclass(frozen=True)
class _Candidate:
    """A space of a script, before those that the user does not want are removed.

    Attributes:
        part: Python expression of the program, if the script defines it: a name, or lib["add"].
        variable: name of the space's variable; `part` for a heuristic space.
        space: the space.
    """

    part: str | None
    variable: str
    space: Space

    def belongs_to(self, program: str, part: str | None) -> bool:
        """Return whether the space's program is `part`, or if that is None, the program or a function of it."""
        return self.part == part if part else (self.part or "").partition("[")[0] == program


def _no_program(file: Path) -> ScriptError:
    hint = "a program is a function under @T.prim_func"
    return ScriptError.of("command/program", f"{file} defines no program", hint)


def _functions_of(name: str, program: Any) -> list[tuple[str, Any]]:
    """Return the parts of a program that are tuned separately, with their Python expressions: the public functions of a
    module that has several and no "main"; otherwise the program itself."""
    from tilewright import ir

    if not isinstance(program, ir.IRModule) or len(program.functions) == 1 or "main" in program.functions:
        return [(name, program)]
    functions = [(str(each), function) for each, function in program.functions.items()]
    return [
        (f'{name}["{each}"]', function)
        for each, function in functions
        if isinstance(function, ir.PrimFunc) and "global_symbol" in function.attrs
    ]


def _is_private(program: Any) -> bool:
    """Return whether a program has no kernel: a function without global_symbol, or a module of such functions."""
    from tilewright import ir

    functions = list(program.functions.values()) if isinstance(program, ir.IRModule) else [program]
    return not any(isinstance(each, ir.PrimFunc) and "global_symbol" in each.attrs for each in functions)


def _parts_of(programs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the functions of modules that are tuned separately, by their Python expressions."""
    return {
        part: function
        for name, value in programs.items()
        for part, function in _functions_of(name, value)
        if part not in programs
    }


def _part_called(file: Path, name: str, programs: Mapping[str, Any]) -> str | None:
    """Return the expression of the module function that a name refers to: by function name, file stem or expression.

    Raises:
        tilewright.ArgumentError: several modules have a function of that name.
    """
    if name in programs:
        return None
    parts = _parts_of(programs)
    found = [p for p in parts if name in (p, _file_name(p))]
    found = found or [p for p in parts if name == p.partition('["')[2].removesuffix('"]')]
    if len(found) > 1:
        several = " or ".join(f"--program {_file_name(part)}" for part in found)
        raise ArgumentError.of("command/program", f"{file} has several programs called {name}", several)
    return found[0] if found else None


def _file_name(program: str) -> str:
    return program.replace('["', "_").removesuffix('"]')
