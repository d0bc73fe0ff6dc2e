"""Continue from the best records of a database with the strategy "descent", which starts at the best schedule."""

from __future__ import annotations

import os

from tilewright import _core
from tilewright.errors import ArgumentError
from tilewright.meta_schedule.builder import Builder
from tilewright.meta_schedule.database.database import Database
from tilewright.meta_schedule.database.kinds import database_in
from tilewright.meta_schedule.database.tuning_record import TuningRecord, Workload, record_in, records_in
from tilewright.meta_schedule.measure_callback import AddToDatabase, RemoveBuildArtifact
from tilewright.meta_schedule.measuring_pipeline import MeasuringPipeline
from tilewright.meta_schedule.runner.runner import Runner
from tilewright.meta_schedule.space_generator import ScheduleFn
from tilewright.meta_schedule.task_scheduler import RoundRobin
from tilewright.meta_schedule.tune_context import SessionTask
from tilewright.schedule import Schedule, Trace
from tilewright.support.machine import TargetLike

__all__ = ["PostOpt", "descend"]

#: number of candidates in a batch
_BATCH = 8


class PostOpt:
    """Descends from the best record of each program in the folder of a session.

    Args:
        work_dir: the folder, with the files of a :class:`JSONDatabase` or of a :class:`SQLiteDatabase`.
        target: target of the records.
        trials: maximum number of measured candidates for each program.
    """

    def __init__(self, work_dir: str | os.PathLike[str], target: TargetLike, trials: int = 100) -> None:
        if trials < 1:
            raise ArgumentError.of("tune/descent", f"trials is {trials}", "at least 1 candidate has to be measured")
        self.database = database_in(work_dir)
        self.target, self.trials = _core.Target(target), trials

    def run(self) -> None:
        """Process all programs; measurements are stored in the database."""
        workloads: dict[int, Workload] = {}
        for record in records_in(self.database):
            workloads.setdefault(id(record.workload), record.workload)
        both = MeasuringPipeline()
        try:
            for workload in workloads.values():
                descend(self.database, workload, self.target, self.trials, both, both)
        finally:
            both.close()


def descend(
    database: Database, workload: Workload, target: TargetLike, trials: int, builder: Builder, runner: Runner
) -> TuningRecord | None:
    """Change one decision after the other of the best record, which is first measured again; return the best record
    then, or None if there was none.

    Args:
        database: database that stores the measurements.
        workload: the program.
        target: target of the records.
        trials: maximum number of measured candidates.
        builder: builder of the candidates.
        runner: runner of the candidates.
    """
    best = record_in(database, workload.mod, target)
    if best is None:
        return None
    space = ScheduleFn(lambda _: _as_one_space(best), sch_rules=[], postprocs=[], mutator_probs={})
    context = SessionTask(
        workload.mod, target=target, space_generator=space, search_strategy="descent", task_name="descent", rand_state=0
    )
    callbacks = [AddToDatabase(), RemoveBuildArtifact()]
    session = RoundRobin()
    try:
        session.tune([context], [1.0], trials, trials, _BATCH, builder, runner, callbacks, database)
    finally:
        if isinstance(builder, MeasuringPipeline):
            builder.leave(context)
    if session.stop_reason == "canceled":  # cancel the descents of other programs, too
        raise KeyboardInterrupt
    return record_in(database, workload.mod, target)


def _as_one_space(record: TuningRecord) -> Schedule:
    """Return the schedule of a record with the steps of its postprocessors as ordinary steps: if a decision changes,
    they are replayed without postprocessors."""
    trace = record.trace
    steps = [step for step in trace.insts if step.kind.name != "EnterPostproc"]
    schedule = Schedule(record.workload.mod)
    Trace(steps, trace.decisions).apply_to_schedule(schedule)
    return schedule
