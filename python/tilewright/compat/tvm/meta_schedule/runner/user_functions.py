"""tvm.meta_schedule.runner.utils: what runners of the user share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.compat.tvm.runtime import ndarray
from tilewright.meta_schedule.runner import EvaluatorConfig

__all__ = [
    "T_ARGUMENT",
    "T_ARGUMENT_LIST",
    "T_ARG_INFO_JSON_OBJ",
    "T_ARG_INFO_JSON_OBJ_LIST",
    "alloc_argument_common",
    "run_evaluator_common",
]

T_ARGUMENT = Any
T_ARGUMENT_LIST = list[Any]
T_ARG_INFO_JSON_OBJ = list[Any]
T_ARG_INFO_JSON_OBJ_LIST = list[Any]


def alloc_argument_common(
    f_random_fill: Callable[[Any], None], device: Any, args_info: Sequence[Any], alloc_repeat: int
) -> list[list[Any]]:
    """Allocate `alloc_repeat` sets of arguments, filled by `f_random_fill`.

    Args:
        f_random_fill: fills an array in place.
        device: where the arrays are.
        args_info: ["TENSOR", dtype, shape] for each argument.
        alloc_repeat: number of sets.

    Raises:
        NotImplementedError: an argument is no tensor.
    """
    sets: list[list[Any]] = []
    for _ in range(alloc_repeat):
        arguments = []
        for kind, *tensor in args_info:
            if kind != "TENSOR":
                raise NotImplementedError((kind, *tensor))
            dtype, shape = tensor
            array = ndarray.empty(shape, dtype, device)
            f_random_fill(array)
            arguments.append(array)
        sets.append(arguments)
    return sets


def run_evaluator_common(
    rt_mod: Any, device: Any, evaluator_config: EvaluatorConfig, repeated_args: Sequence[Sequence[Any]]
) -> list[float]:
    """Measure the entry function of a module; return its seconds per call for each set of arguments."""
    flush = evaluator_config.enable_cpu_cache_flush
    evaluator = rt_mod.time_evaluator(
        func_name=rt_mod.entry_name,
        dev=device,
        number=evaluator_config.number,
        repeat=evaluator_config.repeat,
        min_repeat_ms=evaluator_config.min_repeat_ms,
        f_preproc="cache_flush_cpu_non_first_arg" if flush else "",
    )
    costs: list[float] = []
    for arguments in repeated_args:
        device.sync()
        costs.extend(float(cost) for cost in evaluator(*arguments).results)
    return costs
