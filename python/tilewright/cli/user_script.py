"""The file that a user hands to the command line: running it, and finding the programs and spaces it defines."""

from __future__ import annotations

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
        name: of the files that its result is exported to.
        program: the Python expression that stands for its program under the script.
        space: itself.
    """

    name: str
    program: str
    space: Space


def load_script(file: Path) -> ModuleType:
    """Runs the user's file as a module.

    Raises:
        tilewright.ScriptError: there is no such file, or running it raises; the message shows the user's own line.
    """
    if file.is_dir():
        raise ScriptError.of(
            "command/file", f"{file} is a folder", "name the Python file in it that defines the program"
        )
    if not file.is_file():
        raise ScriptError.of("command/file", f"{file}: no such file", f"the path is relative to {Path.cwd()}")
    # A name of its own in sys.modules, so that a script called json.py does not stand in for another module.
    spec = importlib.util.spec_from_file_location(f"tilewright_script_{file.stem}", file.resolve())
    if spec is None or spec.loader is None:
        raise ScriptError.of("command/file", f"{file} is not a Python file", "its name has to end in .py")
    # Which exception Python raises for it depends on its version.
    if b"\0" in file.read_bytes():
        raise ScriptError.of(
            "command/file", f"{file} cannot be read as Python: it holds null bytes", "it has to be text in UTF-8"
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(file.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Error:
        raise
    except (SyntaxError, UnicodeDecodeError) as error:
        raise _not_python(file, error) from None
    except SystemExit as error:
        message = f"the script ended itself with sys.exit({error.code!r}) while it was read"
        hint = 'put what is to run only by itself under: if __name__ == "__main__":'
        raise ScriptError.of("command/script", f"{message}{_below(place_of(error))}", hint) from None
    except Exception as error:
        message = f"the script raised {type(error).__name__}: {error}"
        raise ScriptError.of("command/script", message + _below(place_of(error))) from error
    finally:
        sys.path.pop(0)
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
    """The programs that a script defines, by name, in the order of their definition."""
    from tilewright import ir

    return {
        name: value
        for name, value in vars(script).items()
        if isinstance(value, (ir.PrimFunc, ir.Module)) and not name.startswith("_")
    }


def select_program(script: ModuleType, file: Path, name: str | None) -> tuple[str, Any]:
    """The program called `name`, also a function of a module, or the only one there is."""
    programs = programs_of(script)
    if not programs:
        raise ScriptError.of(
            "command/program", f"{file} defines no program", "a program is a function under @T.prim_func"
        )
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
    """Several programs as one module: these, or all that the script defines and of which a kernel can be made.

    Raises:
        tilewright.ArgumentError: there is no program of a name, or two kernels would have the same one.
    """
    from tilewright import ir

    if names is None:
        chosen = {name: each for name, each in programs_of(script).items() if not _is_private(each)}
        if not chosen:
            raise ScriptError.of(
                "command/program", f"{file} defines no program", "a program is a function under @T.prim_func"
            )
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
        # Functions under one name in Python, such as of factories, get the names that they have in the file.
        if symbols.count(function.attrs.get("global_symbol")) > 1:
            functions[key] = function.with_attr("global_symbol", key)
    return ir.IRModule(functions)


def check_program(file: Path, name: str, known: Iterable[str], spaces: Iterable[str] = ()) -> None:
    """Refuses a name that no program of the script has.

    Args:
        file: its name, for messages.
        name: that should be of a program.
        known: the programs of the script.
        spaces: the spaces of the script.

    Raises:
        tilewright.ArgumentError: it has none.
    """
    if name not in (names := list(known)):
        hint = f"{name} is a space: --space {name}" if name in spaces else limits.closest(name, names)
        raise ArgumentError.of("command/program", f"{file} has no program called {name}", hint)


def spaces_of_script(
    script: ModuleType, file: Path, only: str | None, program: str | None, heuristic_space: Callable[[Any], Space]
) -> list[NamedSpace]:
    """The spaces of a script, in the order of their definition; then the heuristic ones, of programs without a space:
    of modules, each of their functions. Functions that are private get none.

    Args:
        script: what was loaded.
        file: its name, for messages.
        only: the name of the spaces that are wanted; None for all.
        program: the name of the program whose spaces are wanted, or of a function of a module; None for all.
        heuristic_space: makes a space for a program.

    Raises:
        tilewright.ScriptError: it defines no program.
        tilewright.ArgumentError: none is called `only`, or no program `program`.
    """
    from tilewright.search import Space

    written = {id(value): (name, value) for name, value in vars(script).items() if isinstance(value, Space)}
    programs = programs_of(script)
    found: list[tuple[str | None, str, Space]] = []
    for variable, space in written.values():
        of = next((name for name, value in programs.items() if value is space.program), None)
        found.append((of, variable, space))
    covered = [space.program for _, space in written.values()]
    # Private functions are called by others; where there is nothing else, or one is asked for, that is said of it.
    tuned = {name: value for name, value in programs.items() if name == program or not _is_private(value)}
    for name, value in (tuned or programs).items():
        if not any(value is program for program in covered):
            found += [(part, part, heuristic_space(function)) for part, function in _functions_of(name, value)]
    if program is not None:
        part = _part_called(file, program, programs)
        spaces = [space.name for _, space in written.values()]
        if part is None:
            check_program(file, program, [*programs, *_parts_of(programs)], spaces)
        found = [each for each in found if (each[0] == part if part else (each[0] or "").partition("[")[0] == program)]
    if not found:
        raise ScriptError.of(
            "command/program", f"{file} defines no program", "a program is a function under @T.prim_func"
        )
    if only is not None and only not in (space.name for _, _, space in found):
        known = ", ".join(dict.fromkeys(space.name for _, _, space in found))
        hint = limits.closest(only, [space.name for _, _, space in found], known)
        raise ArgumentError.of("command/space", f"{file} has no space called {only}", hint)
    files = [_file_name(of) if of else space.name for of, _, space in found]
    return [
        NamedSpace(
            # Two spaces of one program must not write to the same files.
            name if files.count(name) == 1 else f"{name}_{space.name}",
            of or f"{variable}.program",
            space,
        )
        for name, (of, variable, space) in zip(files, found, strict=True)
        if only is None or space.name == only
    ]


def _functions_of(name: str, program: Any) -> list[tuple[str, Any]]:
    """What is tuned of a program by itself, with the Python expression that stands for it: the public functions of a
    module that has several and none called main."""
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
    """Whether no kernel is made of it: a function without a name of its own, or a module of such functions."""
    from tilewright import ir

    functions = list(program.functions.values()) if isinstance(program, ir.IRModule) else [program]
    return not any(isinstance(each, ir.PrimFunc) and "global_symbol" in each.attrs for each in functions)


def _parts_of(programs: Mapping[str, Any]) -> dict[str, Any]:
    """The functions of modules that are tuned one by one, by the Python expressions that stand for them."""
    return {
        part: function
        for name, value in programs.items()
        for part, function in _functions_of(name, value)
        if part not in programs
    }


def _part_called(file: Path, name: str, programs: Mapping[str, Any]) -> str | None:
    """The function of a module that a name means: its own name, that of its files, or the expression for it.

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
