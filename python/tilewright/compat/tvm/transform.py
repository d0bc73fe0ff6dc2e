"""tvm.transform: passes from module to module, and the context that builds happen in."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

from tilewright.support.thread_stack import ThreadStack

__all__ = [
    "ApplyPassToFunction",
    "ModulePass",
    "Pass",
    "PassContext",
    "PassInfo",
    "PrintIR",
    "Sequential",
    "module_pass",
]


_ACTIVE: ThreadStack[PassContext] = ThreadStack()


#: options of TVM's passes, accepted and ignored: Tilewright's pipeline has no such options
_IGNORED_OPTIONS = frozenset(
    "tir." + name
    for name in [
        "HoistExpression",
        "HoistIfThenElse",
        "InjectDoubleBuffer",
        "LoopPartition",
        "ReduceBranchingThroughOvercompute",
        "RemoveNoOp",
        "Simplify",
        "UnrollLoop",
        "debug_keep_trivial_loop",
        "disable_cse_tir",
        "disable_storage_rewrite",
        "disable_vectorize",
        "enable_buffer_level_predication",
        "enable_debug",
        "enable_equiv_terms_in_cse_tir",
        "merge_static_smem",
        "use_async_copy",
    ]
)


class PassContext:
    """Options for builds inside the context.

    ``tir.instrument_bound_checkers`` adds bounds checks; other known options are stored and ignored. Instruments are
    called around passes in the context. A :class:`Sequential` skips disabled passes, and passes above `opt_level` that
    are not required. Tilewright's own pipeline does not call instruments.

    Raises:
        TypeError: Tilewright does not support an option.
    """

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Sequence[str] | None = None,
        disabled_pass: Sequence[str] | None = None,
        instruments: Sequence[Any] | None = None,
        config: Mapping[str, Any] | None = None,
        trace: Any = None,
        trace_stack: Any = None,
        make_traceable: Any = None,
        num_evals: int | None = None,
        tuning_api_database: Any = None,
    ) -> None:
        given = {
            "trace": trace,
            "trace_stack": trace_stack,
            "make_traceable": make_traceable,
            "num_evals": num_evals,
            "tuning_api_database": tuning_api_database,
        }
        for name, value in given.items():
            if value:
                raise TypeError(f"Tilewright has no PassContext({name}=...) yet")
        for name in config or {}:
            if name not in _IGNORED_OPTIONS and name != "tir.instrument_bound_checkers":
                raise TypeError(f"Tilewright has no option {name!r} of PassContext yet")
        self.opt_level = opt_level
        self.required_pass, self.disabled_pass = list(required_pass or ()), list(disabled_pass or ())
        self.instruments: list[Any] = list(instruments or ())
        self.config: dict[str, Any] = dict(config or {})

    def __enter__(self) -> PassContext:
        self._enter_instruments()
        _ACTIVE.items.append(self)
        return self

    def _enter_instruments(self) -> None:
        """Start all instruments. If one fails, end those before it and call none any more."""
        for count, instrument in enumerate(self.instruments):
            try:
                instrument.enter_pass_ctx()
            except BaseException:
                entered, self.instruments = self.instruments[:count], []
                for earlier in entered:
                    earlier.exit_pass_ctx()
                raise

    def _exit_instruments(self) -> None:
        instruments = self.instruments
        try:
            for instrument in instruments:
                instrument.exit_pass_ctx()
        except BaseException:
            self.instruments = []
            raise

    def override_instruments(self, instruments: Sequence[Any] | None) -> None:
        """End the present instruments, and start these."""
        self._exit_instruments()
        self.instruments = list(instruments or ())
        self._enter_instruments()

    def pass_enabled(self, info: PassInfo) -> bool:
        """Return whether a :class:`Sequential` runs a pass with this information."""
        if info.name in self.disabled_pass:
            return False
        return info.name in self.required_pass or self.opt_level >= info.opt_level

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _ACTIVE.items.pop()
        self._exit_instruments()

    @staticmethod
    def current() -> PassContext:
        """Return the innermost open context; one with the defaults if there is none."""
        return _ACTIVE.current() or PassContext()

    @staticmethod
    def list_configs() -> dict[str, dict[str, str]]:
        """Return the known options."""
        return {name: {} for name in sorted({*_IGNORED_OPTIONS, "tir.instrument_bound_checkers"})}


class PassInfo:
    """Metadata of a pass."""

    def __init__(
        self, opt_level: int, name: str, required: Sequence[str] | None = None, traceable: bool = False
    ) -> None:
        self.opt_level, self.name, self.required, self.traceable = opt_level, name, list(required or ()), traceable


class Pass:
    """A module-to-module transformation."""

    def __init__(self, function: Callable[[Any, PassContext], Any], info: PassInfo) -> None:
        self._function = function
        self.info = info

    def __call__(self, mod: Any) -> Any:
        """Return the transformed module."""
        context = PassContext.current()
        instruments = list(context.instruments)
        wanted = [instrument.should_run(mod, self.info) for instrument in instruments]
        if not all(wanted) and self.info.name not in context.required_pass:
            return mod
        for instrument in instruments:
            instrument.run_before_pass(mod, self.info)
        made = self._function(mod, context)
        for instrument in instruments:
            instrument.run_after_pass(made, self.info)
        return made

    def __repr__(self) -> str:
        return f"<tvm.transform.Pass {self.info.name}>"


ModulePass = Pass


class Sequential(Pass):
    """Passes one after the other."""

    def __init__(
        self,
        passes: Sequence[Pass] | None = None,
        opt_level: int = 0,
        name: str = "sequential",
        required: Sequence[str] | None = None,
        traceable: bool = False,
    ) -> None:
        self.passes = list(passes or ())
        super().__init__(self._run, PassInfo(opt_level, name, required, traceable))

    def _run(self, mod: Any, context: PassContext) -> Any:
        for step in self.passes:
            info = getattr(step, "info", None)
            if info is None or context.pass_enabled(info):
                mod = step(mod)
        return mod


def PrintIR(header: str = "", show_meta_data: bool = False) -> Pass:
    """Return the pass that prints the module."""

    def run(mod: Any, context: PassContext) -> Any:
        print(f"{header}\n{mod.script(show_meta=show_meta_data)}" if header else mod.script(show_meta=show_meta_data))
        return mod

    return Pass(run, PassInfo(0, "PrintIR"))


def ApplyPassToFunction(
    transform: Pass, func_name_regex: str, error_if_no_function_matches_regex: bool = False
) -> Pass:
    """Return the pass that applies `transform` to the functions of a module whose whole name matches the regex.

    Raises:
        ValueError: no function matches, and `error_if_no_function_matches_regex` is set.
    """

    def run(mod: Any, context: PassContext) -> Any:
        chosen = [str(name) for name in mod.functions if re.fullmatch(func_name_regex, str(name))]
        if not chosen and error_if_no_function_matches_regex:
            raise ValueError(f"no function of the module has a name of the form {func_name_regex!r}")
        if not chosen:
            return mod
        functions = {str(name): function for name, function in mod.functions.items()}
        made = transform(type(mod)({name: functions[name] for name in chosen}, mod.attrs))
        kept = {name: function for name, function in functions.items() if name not in chosen}
        return type(mod)({**kept, **{str(name): function for name, function in made.functions.items()}}, mod.attrs)

    return Pass(run, PassInfo(0, "ApplyPassToFunction"))


def pass_decorator(
    function: Any,
    opt_level: int,
    name: str | None,
    required: Sequence[str] | None,
    make: Callable[..., Any],
    method: str,
) -> Any:
    """Return the pass of a function; for a class, the class of passes that run its method `method`."""

    def wrap(target: Any) -> Any:
        if not inspect.isclass(target):
            return Pass(make(target), PassInfo(opt_level, name or target.__name__, required))

        class Made(Pass):
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                self._inner = target(*args, **kwargs)
                super().__init__(
                    make(getattr(self._inner, method)), PassInfo(opt_level, name or target.__name__, required)
                )

            def __getattr__(self, attribute: str) -> Any:
                return getattr(self.__dict__["_inner"], attribute)

        Made.__name__ = target.__name__
        Made.__doc__ = target.__doc__
        return Made

    return wrap if function is None else wrap(function)


def module_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Any:
    """Return the pass of a function of a module and a context; of a class, that of its method ``transform_module``."""

    return pass_decorator(pass_func, opt_level or 0, name, required, lambda function: function, "transform_module")
