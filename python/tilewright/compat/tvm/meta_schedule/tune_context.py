"""tvm.meta_schedule.tune_context."""

from __future__ import annotations

from typing import Any

from tilewright import _core
from tilewright.compat.tvm.meta_schedule.as_tvm import register_subclass
from tilewright.compat.tvm.target import TargetAsTVM
from tilewright.meta_schedule import tune_context as own
from tilewright.meta_schedule.tune_context import normalize_module

__all__ = ["TuneContext", "_normalize_mod"]

_normalize_mod = normalize_module
_TARGET: Any = _core.TuneContext.target


class TuneContext(own.TuneContext):
    """One task of a search; its parts have TVM's attributes."""

    def __init__(self, mod: Any = None, *, space_generator: Any = None, **options: Any) -> None:
        from tilewright.compat.tvm.meta_schedule.search_strategy import STRATEGIES
        from tilewright.compat.tvm.meta_schedule.space_generator import create

        if isinstance(space_generator, str):
            space_generator = create(space_generator, *([[]] if space_generator == "union" else []))
        elif not isinstance(space_generator, _core.SpaceGenerator) and callable(space_generator):
            space_generator = create(space_generator)
        if options.get("search_strategy") in STRATEGIES:
            options["search_strategy"] = STRATEGIES[options["search_strategy"]]()
        super().__init__(mod, space_generator=space_generator, **options)

    @property
    def target(self) -> Any:
        """Return the target of the program."""
        target = _TARGET.__get__(self)
        return None if target is None else TargetAsTVM(target)

    @target.setter
    def target(self, target: Any) -> None:
        _TARGET.__set__(self, target)


register_subclass(own.TuneContext, TuneContext)
