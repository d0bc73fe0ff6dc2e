"""Compile programs and call the resulting kernels.

>>> kernel = tw.compile(matmul)              # a function, a module, a schedule, or tensors of tilewright.te
>>> kernel(a, b, c)
>>> print(kernel.inspect("asm"))
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from tilewright import _core, te
from tilewright.errors import ArgumentError, Error, ResourceError
from tilewright.kernel.compiler_flags import BuildFlags as BuildFlags
from tilewright.kernel.compiler_flags import build_flags as build_flags
from tilewright.kernel.device_code import View, find_nvrtc, report_on_kernels, text_of_kernels
from tilewright.kernel.dump import dump
from tilewright.kernel.exports import Exported, alone, export, with_validators
from tilewright.kernel.num_threads import get_num_threads as get_num_threads
from tilewright.kernel.num_threads import set_num_threads as set_num_threads
from tilewright.kernel.recorded import as_module, exported_keys, recorded_schedules, with_recorded
from tilewright.support import limits
from tilewright.support.file_names import path_for_core
from tilewright.support.machine import TargetLike, is_for_device
from tilewright.support.notes import NO_RECORD, Note, announced, note_heuristics, notes_of, warn, warn_of_threads
from tilewright.support.wrong_arguments import explained, suggests_keywords

if TYPE_CHECKING:
    from tilewright.kernel.omitted_outputs import CallSignature
    from tilewright.meta_schedule import Database
    from tilewright.task.task import Task
    from tilewright.timing import Timing

#: programs that can be compiled; formulas are given as a tensor or as the list of all parameters
ProgramLike = _core.PrimFunc | _core.Module | _core.Schedule | te.Tensor | Sequence[te.Tensor | _core.Var]


class _Program(NamedTuple):
    """The stages of a compiled program."""

    module: Any
    lowered: Any
    code: Any
    target: str
    report: dict[str, Any]
    schedule: str = "as written"
    #: the unscheduled module; None if unknown
    written: Any = None
    #: the trace of its schedule; None for a heuristic schedule, or if unknown
    trace: Any = None
    check_bounds: bool = False


class Kernel(_core.KernelBase):
    """A compiled function: call it with one argument for each parameter, in their order or by name.

    Tensors are NumPy arrays, or anything with a buffer or ``__dlpack__`` (PyTorch, JAX, ...), taken without copies;
    scalars are numbers. Results are written to the arrays that the function writes to, and the call returns ``None``.
    Outputs may be omitted: parameters of which the program writes each element before it reads it. The call allocates
    zeros for them and returns them, several as a tuple. They are PyTorch tensors if all tensors of the call are, else
    NumPy arrays. Other Python threads run during a call. A pickled kernel is compiled again when it is read.

    Several parameters may have the same name: a parameter is its position, and a keyword that several have is refused.

    An input and the output may be one array if the kernel reads each element only to compute that same element, which
    is proved when it is compiled. Otherwise written memory must not overlap another argument. With
    ``strides = "copy"`` the call copies arrays that are not compact, and copies results back.

    Its parallel loops run on all cores, or on ``threads`` of them if that is not 0. A kernel that a search has found
    uses as many threads as it was tuned for.

    Raises:
        ArgumentError: An argument does not fit its parameter, or written memory overlaps another argument.
        ResourceError: This processor lacks an instruction set, or there is no memory for a workspace.
    """

    def __new__(cls, base: _core.KernelBase, *args: Any, **kwargs: Any) -> Kernel:
        """Return another reference to the code of ``base``."""
        return super().__new__(cls, base)

    def __init__(
        self,
        base: _core.KernelBase,
        program: _Program | None = None,
        library: str | bytes = "",
        call: CallSignature | None = None,
    ) -> None:
        self._program = program
        self._library = library
        self._call = call
        self._validator: Kernel | None = None

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_") and not hasattr(type(self), name):
            hint = "`threads` is how many its loops may use, `strides` what becomes of arrays that are not compact"
            raise AttributeError(f"a kernel has no {name!r} to set; {hint}", name=name)
        super().__setattr__(name, value)

    @property
    def report(self) -> dict[str, Any]:
        """Return the report of the compilation, as data; empty for a library and for interpreted functions.

        ``times`` are the seconds of each lowering pass by name; ``promotions`` have for each buffer of scope
        ``"local"`` its ``function``, ``buffer``, whether it was ``promoted`` to registers, the number of ``registers``,
        and the ``reason`` if it was not; ``notes`` have ``code``, ``function`` and ``message``: see :attr:`notes`.
        For devices, ``kernels`` have resource usage: see :func:`tilewright.kernel.device_code.report_on_kernels`.
        """
        return self._program.report if self._program else {}

    @property
    def schedule(self) -> str:
        """Return the origin of the schedule: ``"as written"`` (by the user), ``"by rules"`` (by heuristics) or
        ``"recorded"`` (by a search); empty for a library."""
        return self._program.schedule if self._program else ""

    @property
    def notes(self) -> tuple[Note, ...]:
        """Return the missed optimizations with reasons: loops without vector code, buffers that are not in registers,
        functions called for single elements. Notes on annotations of the program come first; :func:`tilewright.compile`
        warns of these."""
        return notes_of(self.report)

    def __getitem__(self, name: str) -> Kernel:
        """Return the kernel itself if `name` is its name, so that a kernel can be used as a module with one kernel."""
        if name != self.name:
            raise KeyError(name)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        program = self._program
        if program is None:
            return _from_library, (self._library, self.name, self.strides, self.threads)
        known = (program.schedule, program.written, program.trace, self.strides, program.check_bounds)
        return _compiled_again, (program.module, program.target, self.name, self.threads, *known)

    def _complete(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Call with new arrays for the omitted outputs, and return these; NotImplemented if the call lacks other
        arguments.

        Keywords may also be the names of handles, which can differ from those of their buffers.
        """
        call = self._known_call()
        if call is None:
            if bool(args) != bool(named) and {*named} <= {name for name, _, _ in self.parameters}:
                self._need_every_argument(len(args) + len(named))
            return NotImplemented
        from tilewright.kernel import omitted_outputs

        completed = omitted_outputs.complete(call, args, named)
        if completed is None:
            values = omitted_outputs.by_position(call, args, named)
            if values is not None and len(values) == len(call.names):  # all arguments are given, by names of handles
                return self(*(values[position] for position in range(len(values))))
            if all(call.position(name) is not None for name in named):
                omitted_outputs.refuse_missing(call, self.name, args, named)
            return NotImplemented
        every, made = completed
        self(*every)
        return made[0] if len(made) == 1 else tuple(made)

    def _copied(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Call with compact copies of arguments whose strides do not fit; NotImplemented if copies do not suffice."""
        from tilewright.kernel import strided

        call = self._known_call()
        made = None if call is None else strided.with_copies(call, args, [written for *_, written in self.parameters])
        if made is None:
            return NotImplemented
        values, copy_back = made
        self(*values)
        copy_back()
        return None

    def _need_every_argument(self, given: int) -> None:
        names = [name for name, _, _ in self.parameters]
        if given >= len(names):
            return
        message = f"{self.name} takes {len(names)} arguments ({', '.join(names)}), got {given}"
        hint = "pass all arguments: which outputs are optional is known of shared libraries (.so) that are exported now"
        raise ArgumentError.of("call/count", message, hint)

    def _known_call(self) -> CallSignature | None:
        """Return the call signature of the kernel; None for a library without one."""
        if self._call is None and self._program is not None:
            self._call = _call_of(self._program, self._function())
        return self._call

    def _function(self) -> Any:
        module = self._need_program().module
        # The interpreter looks up functions by their names in the module.
        return module.functions[exported_keys(module).get(self.name, self.name)]

    def _unscheduled_function(self) -> Any:
        return _unscheduled(self._need_program(), self._function())

    @explained
    def inspect(self, what: View, after: str = "") -> str:
        """Return the lowered program, the optimized LLVM IR, the assembly, or the steps of the schedule, as text.

        Args:
            what: One of ``"tir"``, ``"llvm"``, ``"asm"``, ``"opencl"`` or ``"cuda"`` (source code of a device's
                kernels; ``"llvm"`` is then the host code), ``"ptx"`` (NVRTC's output), ``"sass"`` (its machine code,
                disassembled by ``nvdisasm``), ``"memory"`` (the memory plan of a device's kernels), and ``"schedule"``:
                the steps of the heuristics, a search or a :class:`Schedule`, as a script that applies them to ``sch``,
                or ``""``.
            after: With ``"tir"``: the lowering pass after which to print the program, as in :func:`tilewright.lower`.
        """
        if what not in (known := get_args(View)):
            raise ArgumentError.of("kernel/inspect", f"inspect takes {', '.join(map(repr, known))}, not {what!r}")
        program = self._need_program()
        if what == "schedule":
            return self._heuristic_steps() if program.trace is None else str(program.trace.simplified())
        if program.lowered is None:
            if what != "tir" or after:
                raise ArgumentError.of(
                    "kernel/interpreted", f"kernel {self.name} is interpreted: there is only its program, 'tir'"
                )
            return str(program.module.script())
        if what == "tir":
            if not after:
                return str(program.lowered.script())
            return str(_core.lower(program.module, program.target, after, program.check_bounds)[0].script())
        if what in ("opencl", "cuda", "ptx", "sass", "memory"):
            return text_of_kernels(program.code, program.target, self.name, what, program.lowered)
        code = _core.compile_object(program.lowered, program.target, what == "llvm", what == "asm", False)
        return code.llvm_ir if what == "llvm" else code.assembly

    def _heuristic_steps(self) -> str:
        program = self._need_program()
        if program.schedule != "by rules" or program.written is None:
            return ""
        from tilewright.heuristics.by_target import schedule_function
        from tilewright.schedule import Schedule

        functions = dict(program.written.functions)
        # A schedule of a single function names it "main".
        schedule = Schedule(program.written if len(functions) > 1 else next(iter(functions.values())))
        if len(functions) > 1:
            schedule.work_on(str(exported_keys(program.written)[self.name]))
        schedule = schedule_function(schedule, _core.Target(program.target))
        return str(schedule.trace.simplified())

    @explained
    def export(self, folder: str | os.PathLike[str], name: str | None = None) -> Exported:
        """Write the files that a program without Tilewright needs to call this kernel.

        Args:
            folder: Folder to write to; it is created if missing.
            name: Name of the files and of the function in C; by default the name of the function.

            Names that are reserved in C or C++ get an underscore at the end (``double_``, ``exp_``). Characters that C
            does not allow become underscores, and names that would become equal get a number at the end.

        Returns:
            The paths of ``NAME.so``, ``NAME.o`` and ``NAME.h``, in this order. A kernel for another platform
            (``target="llvm -mtriple=aarch64-linux-gnu"``) has no library: link the object there, with the runtime.

        Raises:
            ResourceError: The folder cannot be written to, or there is no C compiler to link the library with.
        """
        name = self.name if name is None else name
        limits.kind("name", name, str, "the name of the files and of the function")
        name = path_for_core("name", name)
        return export(alone(self._need_program(), self.name, name), folder, name, _call_of)

    def validate(self, *args: Any) -> None:
        """Check the declared values of the arrays (``T.assume_buffer_domain``), which calls assume without checks.

        A program without declarations has nothing to check. For an exported kernel, call the function
        ``NAME_validate``.

        Args:
            args: arguments as for a call.

        Raises:
            ArgumentError: An array violates a declaration; the message shows the first position.
        """
        if self._validator is None and self._program is not None:
            self._validator = _validator_of(self._program, self._function())
        if self._validator is not None:
            self._validator(*args)

    def benchmark(self, *args: Any, threads: int = 1, cold: bool = False) -> Timing:
        """Time the kernel on these arguments, against the limits of this machine.

        The limits are measured first, once per process and number of threads, in about a second, with at most one
        thread per core.

        Args:
            args: As for a call; outputs are overwritten.
            threads: Number of threads that parallel loops may use.
            cold: Whether to evict the caches before each call.

        Returns:
            Median and quartiles of the seconds of a call without Python overhead, GFLOP/s, GB/s, and the fraction of
            the binding limit. A library has no program: for its kernels, the work is unknown except for the bytes of
            the arguments.

        Raises:
            ArgumentError: The arguments do not fit.
        """
        from tilewright import timing
        from tilewright.kernel import omitted_outputs, strided
        from tilewright.task.task import work_of

        limits.whole("threads", threads, 1, "a kernel needs at least 1")
        limits.kind("cold", cold, bool, "True or False")
        warn_of_threads(threads)
        if (call := self._known_call()) is not None:
            args = tuple(completed[0]) if (completed := omitted_outputs.complete(call, args, {})) else args
        self(*args)  # reports invalid arguments
        if self.strides == "copy" and call is not None:
            made = strided.with_copies(call, args, [written for *_, written in self.parameters])
            args = args if made is None else tuple(made[0])
        work = work_of(self._unscheduled_function(), args) if self._program else timing.work_of_arrays(args)
        timed = Kernel(self, self._program, self._library, self._call)
        timed.threads = threads
        calls = timing.KernelCalls(timed, args)
        return timing.compare({self.name: calls}, work, threads=threads, cold=cold)[self.name]

    def _need_program(self) -> _Program:
        if self._program is None:
            raise ArgumentError.of(
                "kernel/from-library", f"kernel {self.name} comes from a library, which does not keep its program"
            )
        return self._program


class KernelModule(Mapping[str, Kernel]):
    """The kernels of a module with several public functions, by name."""

    def __init__(self, kernels: dict[str, Kernel]) -> None:
        self._kernels = kernels

    def __getitem__(self, name: str) -> Kernel:
        return self._kernels[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def __getattr__(self, name: str) -> Kernel:
        """Return ``module["f"]`` for ``module.f``."""
        kernels: dict[str, Kernel] = self.__dict__.get("_kernels", {})
        if name in kernels:
            return kernels[name]
        raise AttributeError(f"the module has the kernels {', '.join(kernels)}, not {name!r}", name=name, obj=self)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for name in self._kernels if name.isidentifier())]

    def __repr__(self) -> str:
        return f"KernelModule({', '.join(self._kernels)})"

    @explained
    def inspect(self, what: View, after: str = "") -> str:
        """Return all kernels and their callees, as :meth:`Kernel.inspect` shows them."""
        if what == "schedule":
            steps = {name: kernel.inspect(what) for name, kernel in self._kernels.items()}
            return "\n".join(f"# {name}\n{text}" for name, text in steps.items() if text)
        return next(iter(self._kernels.values())).inspect(what, after)

    @explained
    def export(self, folder: str | os.PathLike[str], name: str) -> Exported:
        """Write all kernels as one library, as :meth:`Kernel.export` does; `name` is only the name of the files."""
        limits.kind("name", name, str, "the name of the files")
        return export(next(iter(self._kernels.values()))._need_program(), folder, name, _call_of)


def _validator_of(program: _Program, function: Any) -> Kernel | None:
    """Return the kernel that checks the declared values of a function's arrays; None without declarations."""
    validator = _core.validator_of(function)
    if validator is None:
        return None
    target = _core.Target("native" if is_for_device(program.target) else program.target)
    module = _core.as_module(validator)
    return kernels_of(_compiled(module, target, written=module))[0]


def _unscheduled(program: _Program, function: Any) -> Any:
    """Return the unscheduled function if it has the same parameters; it lacks the values that a schedule recomputes."""
    key = (
        None
        if program.written is None
        else exported_keys(program.written).get(str(function.attrs.get("global_symbol")))
    )
    if key is None:
        return function
    before = program.written.functions[key]
    return before if _takes_the_same(before, function) else function


def _call_of(program: _Program, function: Any) -> CallSignature:
    """Return the call signature of a function's kernel, which does not depend on its schedule."""
    from tilewright.kernel.omitted_outputs import call_of

    before = _unscheduled(program, function)
    return call_of(before, program.module if before is function else program.written)


def _takes_the_same(one: Any, other: Any) -> bool:
    """Return whether two functions have parameters of the same shapes."""
    buffers = [[function.buffer_map.get(param) for param in function.params] for function in (one, other)]
    return len(buffers[0]) == len(buffers[1]) and all(
        a is b or (a is not None and b is not None and len(a.shape) == len(b.shape) and _equal_extents(a, b))
        for a, b in zip(*buffers, strict=True)
    )


def _equal_extents(a: Any, b: Any) -> bool:
    return all(_core.structural_equal(m, n, map_free_vars=True) for m, n in zip(a.shape, b.shape, strict=True))


@suggests_keywords
def lower(program: ProgramLike, after: str = "", target: TargetLike = "native") -> _core.Module:
    """Return the program after lowering pass ``after`` (all passes if empty), as a module."""
    lowered: _core.Module = _core.lower(as_module(program), str(_core.Target(target)), after)[0]
    return lowered


def _lowered(module: Any, target: str, **options: Any) -> tuple[Any, dict[str, Any]]:
    """Return the lowered module, and a report with the user's names of the functions."""
    lowered, report = _core.lower(module, target, **options)
    for entries in (report["notes"], report["promotions"]):
        _name_functions(entries, module)
    return lowered, report


def _name_functions(entries: list[dict[str, Any]], module: Any) -> list[dict[str, Any]]:
    """Return the entries with the global_symbol of their functions, because a schedule names its functions ``main``."""
    names = {name: str(function.attrs.get("global_symbol", name)) for name, function in module.functions.items()}
    for entry in entries:
        entry["function"] = names.get(entry["function"], entry["function"])
    return entries


@suggests_keywords
def compile(
    program: ProgramLike,
    target: TargetLike = "native",
    *,
    schedule: Literal["as written", "by rules"] | None = None,
    database: str | os.PathLike[str] | Database | None = None,
    check_bounds: bool = False,
    strides: Literal["refuse", "copy"] = "refuse",
) -> Kernel | KernelModule:
    """Compile a function, a module, a schedule or tensors of te. Several public functions make a :class:`KernelModule`.

    The kernel runs on all cores, even if its schedule was tuned for fewer; ``kernel.threads = 1`` sets a limit.

    Args:
        program: What to compile. With :mod:`tilewright.te`: an output tensor, whose inputs become the parameters before
            it, or the list of all parameters.
        target: ``"native"``, ``"interpreter"`` (slow; every access is checked), ``"llvm -mcpu=NAME -num-cores=N ..."``,
            ``"opencl"`` or ``"cuda"`` (of schedules with bound loops), a dict as TVM writes it, or a :class:`Target`.
            With fewer cores than this machine has, the kernel uses that many threads at most.
        schedule: ``"by rules"`` applies a heuristic schedule, without measurements, to functions that have none: all
            loops are serial and without annotations. Sums of floats are reassociated into vector accumulators.
            :func:`tilewright.tune` starts from this schedule. ``"as written"`` compiles the loops of the program. By
            default functions, modules and tensors get the heuristic schedule, unless ``check_bounds`` is set or a cost
            estimate expects the program's own loops to be faster; a :class:`Schedule` is compiled unchanged.
            :attr:`Kernel.schedule` names the choice.
        database: Use the fastest schedule for the program and target in this database: a file, "postgresql://...", or a
            database of :mod:`tilewright.meta_schedule`. Functions of a module without a record get the heuristic
            schedule, with a warning.
        check_bounds: Check every access when the kernel runs. A call that would leave a buffer raises an
            :class:`ArgumentError` that names block, buffer, index, its value, and bound. Loops that keep such a check
            are not vectorized, without a warning. Accesses through pointers that are passed to calls are not checked.
        strides: How to treat arrays that are not contiguous, unless the program declares strides: ``"refuse"`` them, or
            ``"copy"`` inputs before the call and outputs after it. ``kernel.strides`` changes it later.

    Raises:
        ScriptError: The program is not well formed, some access provably leaves its buffer, or iterations of a parallel
            or vectorized loop provably depend on one another.
        ResourceError: The database cannot be read, or holds no record of this program for this target.

    Warns:
        PerformanceWarning: A loop that the program marks as vectorized or unrolled is not, a local buffer is not in
            registers, or a function of a module is not in the database. :attr:`Kernel.notes` lists everything.
    """
    result = compile_quietly(program, target, schedule=schedule, database=database, check_bounds=check_bounds)
    for kernel in kernels_of(result):
        kernel.strides = strides
    if not check_bounds:
        scheduled = {kernel.name for kernel in kernels_of(result) if kernel.schedule == "by rules"}
        notes = next((kernel.notes for kernel in kernels_of(result)), ())
        # The user did not request the optimizations that heuristics request, so do not warn of them.
        warn(tuple(n for n in notes if n.function not in scheduled or n.code == NO_RECORD))
    return result


def kernels_of(compiled: Kernel | KernelModule) -> list[Kernel]:
    """Return the kernels of a compilation as a list."""
    return list(compiled.values()) if isinstance(compiled, KernelModule) else [compiled]


def notes_on(program: Any, target: TargetLike = "native") -> tuple[Note, ...]:
    """Return the notes from lowering a program; empty if it cannot be lowered."""
    try:
        return notes_of(_lowered(as_module(program), str(_core.Target(target)))[1])
    except Error:
        return ()


def compile_quietly(
    program: Any,
    target: TargetLike = "native",
    *,
    schedule: str | None = "as written",
    database: str | os.PathLike[str] | Database | None = None,
    check_bounds: bool = False,
) -> Kernel | KernelModule:
    """Compile a program as :func:`compile` does, without its warnings."""
    limits.kind("check_bounds", check_bounds, bool, "True or False")
    if not isinstance(schedule, str | None) or schedule not in (None, "as written", "by rules"):
        raise ArgumentError.of(
            "compile/schedule",
            f"schedule is {schedule!r:.80}",
            "there are 'as written' and 'by rules'; None leaves it to the program",
        )
    resolved = _core.Target(target)
    as_given = program
    if resolved.kind != "interpreter" and getattr(program, "axes", None):
        program = _core.lower_sparse_iterations(as_module(program))
    if database is not None:
        module, schedules, traces, failed = recorded_schedules(as_given, database, resolved)
        kernels = _compiled(
            module,
            resolved,
            schedules=schedules,
            check_bounds=check_bounds,
            written=as_module(program),
            traces=traces,
        )
        note_heuristics(kernels_of(kernels), failed)
        _note_what_has_no_record(kernels, as_module(program))
        return kernels
    module, written = as_module(program), as_module(getattr(program, "original", program))
    if resolved.kind != "interpreter":
        module, written = map(_core.lower_sparse_iterations, (module, written))
    is_unscheduled = not isinstance(program, _core.Schedule) and (is_for_device(resolved) or not check_bounds)
    if schedule == "by rules" or (schedule is None and is_unscheduled):
        return _with_heuristics(module, resolved, check_bounds, written, schedule is None)
    traces = dict.fromkeys(exported_keys(module), program.trace) if isinstance(program, _core.Schedule) else {}
    return _compiled(module, resolved, check_bounds=check_bounds, written=written, traces=traces)


def _with_heuristics(module: Any, target: Any, checked: bool, written: Any, if_faster: bool) -> Kernel | KernelModule:
    """Compile a module with heuristic schedules; if a heuristic fails, compile the program unscheduled."""
    from tilewright.heuristics import failures
    from tilewright.heuristics.by_target import heuristic_schedules

    ruled = heuristic_schedules(module, target, if_faster=if_faster)
    failed = dict(ruled.failed)
    try:
        schedules = dict.fromkeys(ruled.changed, "by rules")
        kernels = _compiled(ruled.module, target, schedules=schedules, check_bounds=checked, written=written)
    except Exception as error:
        # Devices cannot run unscheduled loops.
        if not ruled.changed or is_for_device(target):
            raise
        # Compiling the unscheduled module reports errors of the program itself.
        kernels = _compiled(module, target, check_bounds=checked, written=written)
        failures.raise_in_tests(error)
        failed |= dict.fromkeys(ruled.changed, failures.description(error))
    _note_what_is_left(kernels, ruled.left)
    note_heuristics(kernels_of(kernels), failed, ruled.notes)
    return kernels


def _note_what_is_left(kernels: Kernel | KernelModule, names: Sequence[str]) -> None:
    """Add a note for functions that no heuristic schedules, unless lowering already explains why loops are slow."""
    for kernel in kernels_of(kernels):
        if kernel.name in names and not any(note.function == kernel.name for note in kernel.notes):
            message = "no rule knows this kind of computation: its loops stay as they are, apart from vectors"
            kernel.report["notes"].append(_core.make_note("compile/no-rule", kernel.name, message))


def _note_what_has_no_record(kernels: Kernel | KernelModule, written: Any) -> None:
    """Add a note for functions of a module without a record in the database, except those that are scheduled
    already."""
    from tilewright.heuristics.unscheduled import is_unscheduled

    unscheduled = {f.attrs.get("global_symbol") for f in written.functions.values() if is_unscheduled(f)}
    for kernel in kernels_of(kernels):
        # Interpreted functions have no report.
        if kernel.name in unscheduled and kernel.schedule != "recorded" and kernel.report:
            how = "scheduled by heuristics" if kernel.schedule == "by rules" else "compiled unscheduled"
            message = f"the database has no record of it for this target: it is {how}"
            kernel.report["notes"].append(_core.make_note(NO_RECORD, kernel.name, message))


def _compiled(
    module: Any,
    target: _core.Target,
    *,
    written: Any,
    schedules: Mapping[str, str] = MappingProxyType({}),
    traces: Mapping[str, Any] = MappingProxyType({}),
    check_bounds: bool = False,
) -> Kernel | KernelModule:
    """Compile a module without scheduling it.

    Args:
        module: the scheduled functions.
        target: the target.
        written: the unscheduled functions.
        schedules: origins of the functions' schedules, by the names of kernels.
        traces: traces of these schedules, by the names of kernels.
        check_bounds: check every access.
    """
    if target.kind == "interpreter":
        return _interpreted(module)
    text = str(target)
    folder = os.environ.get("TILEWRIGHT_DUMP")
    # Values that are not functions are refused below.
    attrs = {name: getattr(function, "attrs", {}) for name, function in module.functions.items()}
    names = ", ".join(str(of_one.get("global_symbol", name)) for name, of_one in attrs.items())
    _check_names(attrs)
    with announced(f"compiling {names}"):
        lowered, report = _lowered(module, text, check_bounds=check_bounds)
        find_nvrtc(target)
        code = _core.compile_object(lowered, text, bool(folder), bool(folder))
    report["notes"] += _name_functions(code.notes, module)
    report_on_kernels(report, code, target, module, lowered)
    # Omit these notes for loops that heuristics or searches have parallelized: the primitive has proved independence.
    report["notes"] = [
        note
        for note in report["notes"]
        if note["code"] != "lower/unproved-parallel" or schedules.get(note["function"]) not in ("by rules", "recorded")
    ]
    if folder:
        dump(Path(folder), module, text, code)
    source = _Program(module, lowered, code, text, report, written=written, check_bounds=check_bounds)
    sources = {
        name: source._replace(schedule=schedules.get(name, source.schedule), trace=traces.get(name))
        for name in exported_keys(module)
    }
    if code.platform:
        named = {name: module.functions[key] for name, key in exported_keys(module).items()}
        alike = _core.Module(named, {})
        return _one_or_many(
            {name: Kernel(_core.interpreted_callable(alike, name, code.platform), sources[name]) for name in named}
        )
    loaded = _core.load_object(code.bytes)
    kernels = {name: Kernel(loaded.callable(name), sources.get(name, source)) for name in loaded.names}
    if not is_for_device(target) and target.num_cores < _core.Target("native").num_cores:
        for kernel in kernels.values():
            kernel.threads = target.num_cores
    return _one_or_many(kernels)


def _check_names(attrs: Mapping[Any, Mapping[str, Any]]) -> None:
    """Refuse names that no kernel can have, which C ends at the first zero byte.

    Args:
        attrs: attributes of the functions by their names in the module.
    """
    for key, of_one in attrs.items():
        name = str(of_one.get("global_symbol", key))
        if not name or "\0" in name:
            what = "is empty" if not name else f"contains a zero byte: {name!r:.80}"
            raise ArgumentError.of("compile/name", f"the global_symbol of the function {key!s} {what}")


def compile_task(task: Task, scheduled: Any = None, target: str = "native") -> Kernel:
    """Return the kernel of a task's function, unscheduled or with the schedule of a search."""
    if scheduled is None:
        kernel = compile_quietly(task.module, target)
    else:
        names = exported_keys(scheduled.mod)
        found, traces = dict.fromkeys(names, "recorded"), dict.fromkeys(names, scheduled.trace)
        resolved = _core.Target(target)
        kernel = _compiled(scheduled.mod, resolved, schedules=found, written=task.module, traces=traces)
    return kernel[task.entry] if isinstance(kernel, KernelModule) else kernel


def compile_functions(
    module: Any, scheduled: Mapping[str, Any], traces: Mapping[str, Any], target: TargetLike
) -> Kernel | KernelModule:
    """Compile a module in which some functions were tuned: these as scheduled, the others as :func:`compile` does.

    Args:
        module: the unscheduled module.
        scheduled: the tuned functions, by the names of kernels.
        traces: the traces of their schedules, by the names of kernels.
        target: the target.
    """
    resolved = _core.Target(target)
    chosen, schedules, failed = with_recorded(module, scheduled, resolved)
    kernels = _compiled(chosen, resolved, schedules=schedules, written=module, traces=traces)
    note_heuristics(kernels_of(kernels), failed)
    return kernels


def _interpreted(module: Any) -> Kernel | KernelModule:
    names = [name for name, func in module.functions.items() if "global_symbol" in func.attrs]
    _check_names({name: module.functions[name].attrs for name in names})
    source = _Program(module, None, None, "interpreter", {})
    return _one_or_many({name: Kernel(_core.interpreted_callable(module, name), source) for name in names})


@explained
def load(path: str | os.PathLike[str]) -> Kernel | KernelModule:
    """Load the kernels of a shared library that :meth:`Kernel.export` wrote, or of an object file that a builder of a
    search made (``RunnerInput.artifact_path``), for this kind of processor: one kernel, or a :class:`KernelModule` of
    several. ``kernel.strides = "copy"`` makes a kernel accept arrays that are not compact.

    Raises:
        ResourceError: The file cannot be loaded, or has no kernels, or kernels of another version.
    """
    place = os.path.abspath(path_for_core("path", path))
    if place.endswith(".o"):
        try:
            return load_object_code(Path(place).read_bytes())
        except (OSError, ResourceError) as error:
            why = error.strerror if isinstance(error, OSError) else error.message
            hint = "give the path of an object that kernel.export() or a builder of a search wrote"
            raise ResourceError.of("library/open", f"{place} cannot be loaded: {why}", hint) from None
    return _one_or_many(_kernels_of_library(place))


def object_code_of(compiled: Kernel | KernelModule) -> bytes:
    """Return object code from which :func:`load_object_code` creates the same kernels, on this kind of processor.

    Raises:
        ArgumentError: The kernels are interpreted, or come from a library.
    """
    program = kernels_of(compiled)[0]._need_program()
    if program.code is None:
        raise ArgumentError.of(
            "kernel/interpreted", "an interpreted kernel has no object code: compile it for 'native'"
        )
    return bytes(program.code.bytes)


def load_object_code(code: bytes) -> Kernel | KernelModule:
    """Return the kernels of object code, without their programs."""
    return _one_or_many(_kernels_of_object(code))


def _kernels_of_object(code: bytes) -> dict[str, Kernel]:
    """Return the kernels of object code, by name, with their validators."""
    loaded = _core.load_object(code)
    return with_validators({name: Kernel(loaded.callable(name), None, code) for name in loaded.names})


def _kernels_of_library(path: str) -> dict[str, Kernel]:
    """Return the kernels of a library, by name, with their validators."""
    from tilewright.kernel.omitted_outputs import signatures_from_json

    found, text = _core.load_library(path_for_core("path", path))
    calls = signatures_from_json(text)
    return with_validators({name: Kernel(base, None, path, calls.get(name)) for name, base in found.items()})


def _from_library(source: str | bytes, name: str, strides: str = "refuse", threads: int = 0) -> Kernel:
    """Return a kernel of the library at a path, or of object code."""
    kernel = (_kernels_of_object(source) if isinstance(source, bytes) else _kernels_of_library(source))[name]
    kernel.strides, kernel.threads = strides, threads
    return kernel


def _compiled_again(
    module: Any,
    target: str,
    name: str,
    threads: int,
    schedule: str,
    written: Any,
    trace: Any = None,
    strides: str = "refuse",
    check_bounds: bool = False,
) -> Kernel:
    schedules, traces, resolved = {name: schedule}, {name: trace}, _core.Target(target)
    kernel = _compiled(
        module, resolved, schedules=schedules, written=written, traces=traces, check_bounds=check_bounds
    )[name]
    kernel.threads, kernel.strides = threads, strides
    return kernel


def _one_or_many(kernels: dict[str, Kernel]) -> Kernel | KernelModule:
    return next(iter(kernels.values())) if len(kernels) == 1 else KernelModule(kernels)
