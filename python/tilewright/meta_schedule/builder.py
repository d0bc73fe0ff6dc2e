"""Builders: compile scheduled programs to files that a runner loads."""

from __future__ import annotations

import concurrent.futures
import contextlib
import shutil
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tilewright import _core, ir
from tilewright.cluster import labels, tasks
from tilewright.cluster.answers import decoded_build
from tilewright.cluster.connection import Cluster
from tilewright.cluster.lone import LoneTask
from tilewright.errors import ArgumentError, Error
from tilewright.meta_schedule import named_functions
from tilewright.meta_schedule.worker import Lost, Overdue, Raised, Worker
from tilewright.support import limits
from tilewright.support.machine import cpu_count
from tilewright.support.wrong_arguments import suggests_keywords

__all__ = ["Builder", "BuilderInput", "BuilderResult", "DaskBuilder", "LocalBuilder", "PyBuilder"]

#: functions that build from (module, target, parameters), or export the result of a build to a file
BuildFunction = Callable[[ir.IRModule, Any, Any], Any]
ExportFunction = Callable[[Any], str]


@dataclass(frozen=True)
class BuilderInput:
    """A program to build, and its target; `params` are constants that a builder may fold, by name."""

    mod: ir.IRModule
    target: Any
    params: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class BuilderResult:
    """The built file, or the error."""

    artifact_path: str | None
    error_msg: str | None


class Builder(ABC):
    """Builds many programs at a time."""

    @abstractmethod
    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        """Return one result for each input, in order; errors are part of the results."""

    @staticmethod
    def create(kind: Builder | str = "local", *args: Any, **kwargs: Any) -> Builder:
        """Return the builder of a kind: "local" or "dask"; an existing builder is returned unchanged.

        Raises:
            tilewright.ArgumentError: the kind does not exist.
        """
        if isinstance(kind, Builder):
            return kind
        kinds: dict[str, Callable[..., Builder]] = {"local": LocalBuilder, "dask": DaskBuilder}
        made: Builder = limits.of_kind("builder", kind, kinds, "builder/kind")(*args, **kwargs)
        return made


PyBuilder = Builder
create = Builder.create

#: maximum number of processes of a builder; more could not be started
MOST_WORKERS = 4096


class LocalBuilder(Builder):
    """Builds in several processes of this machine; a process that crashes or hangs fails only its candidate.

    Args:
        max_workers: number of processes; by default one for each processor.
        timeout_sec: maximum seconds of a build.
        f_build: function of module, target and parameters, or its name; compiles by default.
        f_export: function of the result of `f_build`, or its name; writes a file and returns its path.
        initializer: called once in each process, before everything else.

    Raises:
        tilewright.ArgumentError: the processes have no function of this name.
    """

    @suggests_keywords
    def __init__(
        self,
        *,
        max_workers: int | None = None,
        timeout_sec: float = 30.0,
        f_build: BuildFunction | str | None = None,
        f_export: ExportFunction | str | None = None,
        initializer: Callable[[], None] | None = None,
    ) -> None:
        if max_workers is not None:
            limits.whole("max_workers", max_workers, 0, most=MOST_WORKERS)
        limits.positive("timeout_sec", timeout_sec)
        for name, own in (("f_build", f_build), ("f_export", f_export), ("initializer", initializer)):
            limits.kind(name, own, Callable | str | None, "a function, the name of one, or None")
        self.max_workers = max_workers or cpu_count(logical=True)
        self.timeout_sec = timeout_sec
        self._functions = (f_build or default_build, f_export or default_export)
        #: whether no code of the user is called
        self.is_plain = not (f_build or f_export or initializer) and type(self).build is LocalBuilder.build
        self._workers = [Worker(initializer) for _ in range(self.max_workers)]
        self._free: SimpleQueue[Worker] = SimpleQueue()
        for worker in self._workers:
            self._free.put(worker)
        check_names(self._workers[0], self._functions, SHIPPED)
        self._close = weakref.finalize(self, _close, self._workers)

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        """Return one result for each input, in their order."""
        with concurrent.futures.ThreadPoolExecutor(max(1, min(self.max_workers, len(build_inputs)))) as threads:
            futures = [threads.submit(self._build_one, each) for each in build_inputs]
            try:
                return [future.result() for future in futures]
            except BaseException:  # Ctrl-C does not wait for running builds
                for future in futures:
                    future.cancel()
                self.close()
                raise

    def close(self) -> None:
        """End the processes; a later build starts others."""
        _close(self._workers)

    def _build_one(self, each: BuilderInput) -> BuilderResult:
        worker = self._free.get()
        folder = path = None
        try:
            folder = tempfile.mkdtemp(prefix="tilewright-build-")
            request = (*self._functions, each.mod, each.target, each.params, folder)
            path = worker.call(_build_and_export, request, self.timeout_sec)
            return BuilderResult(path, None)
        except Overdue:
            return BuilderResult(None, f"LocalBuilder: Timeout, killed after {self.timeout_sec} seconds")
        except (Lost, Raised, Error) as error:
            return BuilderResult(None, f"LocalBuilder: An exception occurred\n{error}")
        except Exception as error:  # no folder can be made; the program or a function cannot be pickled
            return BuilderResult(None, f"LocalBuilder: An exception occurred\n{type(error).__name__}: {error}")
        finally:
            if folder is not None and (path is None or Path(path).parent != Path(folder)):
                shutil.rmtree(folder, ignore_errors=True)
            self._free.put(worker)


def _close(workers: list[Worker]) -> None:
    for worker in workers:
        worker.close()


class DaskBuilder(Builder):
    """Builds on the workers of a Dask cluster. With a :class:`~tilewright.meta_schedule.runner.DaskRunner`, a session
    has objects built and measured there without seeing them.

    Args:
        cluster: the address of the scheduler, "tcp://host:8786", or a ``distributed.Client``.
        timeout_sec: maximum seconds of a build.

    Raises:
        tilewright.ResourceError: Dask is not installed, or no scheduler answers.
    """

    @suggests_keywords
    def __init__(self, cluster: Any, *, timeout_sec: float = 30.0) -> None:
        limits.positive("timeout_sec", timeout_sec)
        self.timeout_sec = timeout_sec
        self.cluster = Cluster(cluster)
        #: whether no code of the user is called
        self.is_plain = type(self).build is DaskBuilder.build
        self._close = weakref.finalize(self, self.cluster.close)

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        """Return one result for each input, in order; object code is sent to this process."""
        begun = [self._begin(each) for each in build_inputs]
        return [each if isinstance(each, BuilderResult) else self._end(each) for each in begun]

    def close(self) -> None:
        """Leave the cluster."""
        self._close()

    def _begin(self, each: BuilderInput) -> LoneTask | BuilderResult:
        try:
            target = _core.Target(each.target) if isinstance(each.target, str) else each.target
            arguments = (*_core.candidate_parts(each.mod, target), target.num_cores, self.timeout_sec)
        except Error as error:
            return BuilderResult(None, f"DaskBuilder: {error}")

        def submit(name: str, is_suspect: bool) -> Any:
            return tasks.submit_build(self.cluster, name, *arguments, is_suspect=is_suspect)

        return LoneTask(self.cluster, "build", submit, labels.builds(), self.timeout_sec)

    def _end(self, task: LoneTask) -> BuilderResult:
        try:
            answer = tasks.built_at(decoded_build(task.result()), 0)
        except Exception as error:
            return BuilderResult(None, f"DaskBuilder: the build was lost: {error}")
        if answer.get("object") is None:
            failure = answer.get("error") or [
                _core.measured_facts(answer["result"])[name] for name in ("code", "message")
            ]
            return BuilderResult(None, f"DaskBuilder: {failure[1]}")
        folder = None
        try:
            folder = tempfile.mkdtemp(prefix="tilewright-build-")
            path = Path(folder) / "kernel.o"
            path.write_bytes(answer["object"])
        except OSError as error:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            return BuilderResult(None, f"DaskBuilder: {error}")
        return BuilderResult(str(path), None)


def check_names(
    worker: Worker, functions: Sequence[Callable[..., Any] | str], shipped: Mapping[str, Callable[..., Any]]
) -> None:
    """Check that a worker has the functions that are given by name.

    Args:
        worker: the worker.
        functions: functions or their names.
        shipped: functions that every worker has, by name.

    Raises:
        tilewright.ArgumentError: the worker lacks a function.
    """
    asked = [name for name in functions if isinstance(name, str) and name not in shipped]
    if not asked:
        return
    try:
        missing = worker.call(_missing, (asked,), seconds=60.0)
    except Raised as error:
        raise ArgumentError.of("worker/initializer", f"the initializer of a worker raised\n{error}") from None
    if missing:
        raise ArgumentError.of(
            "functions/unknown",
            f"workers have no function {missing[0]!r}",
            "register it there: pass an `initializer` that does",
        )


def _missing(names: list[str]) -> list[str]:
    return [name for name in names if named_functions.find(name) is None]


def resolved(function: Callable[..., Any] | str, shipped: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
    """Return the function, looked up in this process if given by name."""
    return named_functions.need(function, shipped) if isinstance(function, str) else function


#: folder for the files of a worker, whose remains after failed builds are removed
_folder: list[str] = []


def _build_and_export(build: Any, export: Any, mod: Any, target: Any, params: Any, folder: str) -> str:
    _folder[:] = [folder]
    return str(resolved(export, SHIPPED)(resolved(build, SHIPPED)(mod, target, params)))


def default_build(mod: ir.IRModule, target: Any, params: Mapping[str, Any] | None = None) -> Any:
    """Compile a module, assuming that blocks which change the layout of parameters have run; `params` are ignored."""
    from tilewright.kernel.kernel import compile_quietly
    from tilewright.meta_schedule.layout_preproc import without_layout_rewrites

    functions = {
        name: without_layout_rewrites(function) if isinstance(function, ir.PrimFunc) else function
        for name, function in mod.functions.items()
    }
    return compile_quietly(ir.IRModule(functions, mod.attrs), target)


def default_export(kernels: Any) -> str:
    """Write the object code of compiled kernels to a folder of its own.

    Raises:
        tilewright.ArgumentError: a kernel is interpreted and has no object code.
    """
    from tilewright.kernel.kernel import object_code_of

    folder = _folder[0] if _folder else tempfile.mkdtemp(prefix="tilewright-build-")
    path = Path(folder) / "kernel.o"
    path.write_bytes(object_code_of(kernels))
    return str(path)


def remove_build_dir(artifact_path: str) -> None:
    """Remove a file that a builder made, and its folder if that is empty then."""
    path = Path(artifact_path)
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
        if path.parent.resolve().parent == Path(tempfile.gettempdir()).resolve():
            with contextlib.suppress(OSError):
                path.parent.rmdir()


#: functions that may be given by name
SHIPPED: dict[str, Callable[..., Any]] = {
    "meta_schedule.builder.default_build": default_build,
    "meta_schedule.builder.default_export": default_export,
}
