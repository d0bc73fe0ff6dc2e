"""tvm.meta_schedule.task_scheduler."""

from __future__ import annotations

from typing import Any

from tilewright.compat.tvm.meta_schedule.as_tvm import as_tvm, register_subclass
from tilewright.compat.tvm.meta_schedule.delegation import call_derived, delegates_to
from tilewright.meta_schedule import task_scheduler
from tilewright.meta_schedule.task_scheduler import TaskRecord, TaskScheduler

__all__ = ["GradientBased", "PyTaskScheduler", "RoundRobin", "TaskRecord", "TaskScheduler", "create"]


def _with_fields(cls: Any) -> Any:
    """Add the fields of schedulers under TVM's names to a class, and return it."""
    for name in ("tasks", "measure_callbacks", "database", "cost_model", "remaining_tasks"):
        setattr(cls, f"{name}_", property(lambda self, name=name: getattr(self, name)))  # type: ignore[misc]
    return cls


@_with_fields
class GradientBased(task_scheduler.GradientBased):
    """More batches to tasks that gain by them."""


@_with_fields
class RoundRobin(task_scheduler.RoundRobin):
    """One batch after the other."""


register_subclass(task_scheduler.GradientBased, GradientBased)
register_subclass(task_scheduler.RoundRobin, RoundRobin)


def create(kind: Any = "gradient", *args: Any, **kwargs: Any) -> Any:
    """Return the scheduler of this kind."""
    return as_tvm(TaskScheduler.create(kind, *args, **kwargs))


@_with_fields
class _PyTaskScheduler(TaskScheduler):
    """The scheduler that a decorated subclass of PyTaskScheduler becomes."""

    def next_task_id(self) -> int:
        return int(call_derived(self, "next_task_id"))


def _user_method_or_default(name: str) -> Any:
    """Return a method that calls the method of the user's object if its class defines one, else the default."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        own = self._methods.get(name)
        return own(*args, **kwargs) if own else getattr(TaskScheduler, name)(self, *args, **kwargs)

    return method


for _name in ("tune", "join_running_task", "terminate_task", "touch_task", "print_tuning_statistics"):
    setattr(_PyTaskScheduler, _name, _user_method_or_default(_name))


@delegates_to(_PyTaskScheduler)
@_with_fields
class PyTaskScheduler:
    """The base of schedulers in Python, which ``derived_object`` decorates."""

    _outer: Any

    def next_task_id(self) -> int:
        """Return the task that gets the next batch; -1 if all have ended."""
        raise NotImplementedError

    def tune(self, *args: Any, **kwargs: Any) -> None:
        """Run one session."""
        TaskScheduler.tune(self._outer(), *args, **kwargs)

    def join_running_task(self, task_id: int) -> Any:
        """Wait for the batch of a task."""
        return TaskScheduler.join_running_task(self._outer(), task_id)

    def terminate_task(self, task_id: int) -> None:
        """End a task."""
        TaskScheduler.terminate_task(self._outer(), task_id)

    def touch_task(self, task_id: int) -> None:
        """Join the batch of a task if all of it is done."""
        TaskScheduler.touch_task(self._outer(), task_id)

    def print_tuning_statistics(self) -> None:
        """Log the progress of each task."""
        TaskScheduler.print_tuning_statistics(self._outer())
