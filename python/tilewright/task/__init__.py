"""Programs as tasks: their parameters, sizes and inputs, what they compute, and whether a schedule computes it too."""

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
