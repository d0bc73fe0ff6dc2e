// The C++ side of Python's schedule objects, for the files that bind schedules.
#pragma once

#include "python/module.h"
#include "python/node_caster.h"
#include "schedule/schedule.h"

namespace tilewright::python {

/// How detailed a refusal is: with the program, without it, its code only.
enum class ErrorDetail { kDetail, kFast, kNone };

struct PySchedule {
  schedule::Schedule schedule;
  /// Python code has read a sampled value, so its later steps may depend on it.
  bool decisions_read = false;
  ErrorDetail detail = ErrorDetail::kDetail;
  /// Each step is followed by a check of the whole program.
  bool debug = false;
  /// The program before the first step, from which the trace leads here.
  Ref<Module> original{};
};
using SchedulePtr = std::shared_ptr<PySchedule>;

/// A handle knows the row of the table and what the row holds, so a handle of another schedule is noticed. Without an
/// owner it stands for itself, in traces that are built manually or parsed; then its number is its own.
template <class RV>
struct PyHandle {
  SchedulePtr owner;
  RV rv;
  const schedule::Handle& row() const { return owner->schedule.state().handle(rv.index); }
};
using PyLoop = PyHandle<schedule::LoopRV>;
using PyBlock = PyHandle<schedule::BlockRV>;
using PyExpr = PyHandle<schedule::ExprRV>;

struct PyTrace {
  schedule::Trace trace;
  SchedulePtr owner{};       ///< schedule that the handles belong to
  bool of_schedule = false;  ///< the record of a schedule
  bool own_numbers = false;  ///< handles have numbers of their own, as far as they have no owner
};

[[noreturn]] inline void fail(Diagnostic diagnostic) { throw Exception(std::move(diagnostic)); }
/// The message with the program and the nodes it is about, or less, as the schedule says.
[[noreturn]] void fail_in(const PySchedule& self, Diagnostic diagnostic);
template <class T>
T unwrap_in(const PySchedule& self, Result<T> result) {
  if (!result.ok()) fail_in(self, std::move(result.error()));
  return std::move(*result);
}
std::string class_name(nb::handle object);

bool same_row(const schedule::Handle& a, const schedule::Handle& b);
/// Numbers that no other handle has; they start far above the rows of any schedule.
uint32_t own_numbers(uint32_t count);

/// The handle, when this schedule or the one that it was copied from has given it.
template <class RV>
RV own(const PySchedule& self, const PyHandle<RV>& handle, std::string_view method) {
  const schedule::State& state = self.schedule.state();
  bool known = handle.owner && handle.rv.index < state.num_handles() &&
               same_row(state.handle(handle.rv.index), handle.row()) &&
               !self.schedule.forgotten().contains(handle.rv.index);
  if (!known) {
    fail(argument_error("schedule/handle", std::string(method) + "() got a handle that this schedule does not have",
                        "get the handle from this schedule, or from the one it was copied from"));
  }
  return handle.rv;
}

template <class RV>
bool same_handle(const PyHandle<RV>& a, const PyHandle<RV>& b) {
  if (a.rv.index != b.rv.index || !a.owner != !b.owner) return false;
  return !a.owner || same_row(a.row(), b.row());
}

/// Reads a sampled value; further steps of Python may depend on it.
int64_t read(const PyExpr& expr);
/// The Python object of a row of the schedule's table.
nb::object make_handle(const SchedulePtr& self, uint32_t number);

nb::object decision_to_python(const schedule::Value& value);
schedule::Value decision_from_python(nb::handle object);
/// Another step for a trace of this schedule: None for none, a tilewright.Instruction, or the decision of what is
/// there.
schedule::TraceEdit edit_from_python(const SchedulePtr& self, size_t step, nb::handle instead);
/// The trace of an object of class Trace.
const schedule::Trace& trace_from_python(nb::handle trace);

Bind bind_handles;
Bind bind_trace;
void bind_schedule_state(nb::module_& m, nb::class_<PySchedule>& cls);

}  // namespace tilewright::python
