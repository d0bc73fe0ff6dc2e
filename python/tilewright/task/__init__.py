"""Programs as tasks: parameters, sizes and inputs, the work of a call, and the verification of schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.support.lazy_names import lazy

if TYPE_CHECKING:
    from tilewright.task.task import (
        Parameter,
        Task,
        array_labels_of,
        by_buffer,
        check_inputs,
        check_value,
        module_of,
        name_of,
        names_of,
        one_program,
        only_function,
        open_sizes_of,
        program_keys,
        sizes_of,
        task_of,
        work_of,
    )

#: public name -> the module of this package that defines it
_NAMES = {
    "Parameter": "task",
    "Task": "task",
    "array_labels_of": "task",
    "by_buffer": "task",
    "check_inputs": "task",
    "check_value": "task",
    "module_of": "task",
    "name_of": "task",
    "names_of": "task",
    "one_program": "task",
    "only_function": "task",
    "open_sizes_of": "task",
    "program_keys": "task",
    "sizes_of": "task",
    "task_of": "task",
    "work_of": "task",
}

__all__ = [
    "Parameter",
    "Task",
    "array_labels_of",
    "by_buffer",
    "check_inputs",
    "check_value",
    "module_of",
    "name_of",
    "names_of",
    "one_program",
    "only_function",
    "open_sizes_of",
    "program_keys",
    "sizes_of",
    "task_of",
    "work_of",
]

__getattr__ = lazy(__name__, _NAMES, ())
