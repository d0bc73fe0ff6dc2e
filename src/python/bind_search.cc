// Sessions: the search of one program, and how far a task is.
#include <nanobind/stl/unique_ptr.h>

#include "python/bind_cluster.h"
#include "python/database_objects.h"
#include "python/measured_arguments.h"
#include "python/part.h"
#include "search/measure/slice_timer.h"
#include "search/session/session.h"

namespace tilewright::python {

using namespace search;

using MakeArguments = decltype(TuneTask::arguments);
using JudgeReference = decltype(TuneTask::judge_reference);

namespace {

MakeArguments make_arguments_by(const nb::object& function) {
  return [held = std::make_shared<HeldCallable>(nb::cast<nb::callable>(function))](int64_t reduction_length) {
    nb::gil_scoped_acquire gil;
    return make_arguments(held->callable(), reduction_length);
  };
}

JudgeReference judge_reference_by(const nb::object& function) {
  return [held = std::make_shared<HeldCallable>(nb::cast<nb::callable>(function))](Arguments& values) {
    return judge_in_python(held->callable, values);
  };
}

}  // namespace

template <>
struct Option<MakeArguments, true> : ObjectOption<MakeArguments, make_arguments_by> {};
template <>
struct Option<JudgeReference, true> : ObjectOption<JudgeReference, judge_reference_by> {};
template <>
struct Option<MakeMeasurer> : ObjectOption<MakeMeasurer, measurer_by> {};

namespace {

void bind_task_progress(nb::module_& m) {
  bind_options<StopRules>(m, "When a task ends before its trials are used up.");
  nb::class_<TaskProgress>(m, "TaskProgress", "How far a task of a session is, and what comes next.")
      .def(nb::init<int64_t, StopRules>(), "most_trials"_a, "rules"_a)
      .def("due", &TaskProgress::due, "share"_a,
           "Results to be reported before the next batch is sampled, where that share of the latest has to be known.")
      .def("sampled", &TaskProgress::sampled, "candidates"_a.none(),
           "The strategy gave so many candidates; None: it is out of candidates.")
      .def("reported", &TaskProgress::reported, "results"_a)
      .def("submitted", &TaskProgress::submitted, "candidates"_a)
      .def("measured", &TaskProgress::measured, "seconds"_a, "Of a call, infinity for a failure.")
      .def_prop_ro("wants_more", &TaskProgress::wants_more)
      .def_prop_ro("stop_reason", &TaskProgress::stop_reason)
      .def_prop_ro("end_reason", &TaskProgress::end_reason);
}

void bind_session(nb::module_& m) {
  nb::class_<RaceRules>(m, "RaceRules", "How often a candidate is called.")
      .def_static("steady", &RaceRules::steady, "slices"_a, "calls"_a, "seconds"_a, "budget"_a,
                  "Times every candidate alike: so many slices of so many calls and seconds at least.");
  bind_options<PipelineOptions>(m, "How candidates are built and measured.");
  bind_options<SessionOptions>(m, "When a search ends, and what its records say.");
  m.attr("DEFAULT_BATCH") = SessionOptions{}.batch;
  m.def("seconds_for_finals", &seconds_for_finals, "limit"_a,
        "Return the seconds that a search of so many seconds leaves for the finals.");
  bind_options<TuneTask>(m, "What is searched for.");
  nb::class_<TuningSession>(m, "TuningSession", "A search in progress; tilewright.search drives it.")
      .def(nb::new_([](TuneTask task, SessionOptions options, std::shared_ptr<Database> database) {
             return unwrap(gil_released(
                 [&] { return TuningSession::start(std::move(task), std::move(options), std::move(database)); }));
           }),
           "task"_a, "options"_a, "database"_a)
      .def(
          "step",
          [](TuningSession& self, double seconds) {
            Status status = gil_released([&] { return self.step(seconds); });
            raise_if_process_ends();
            return status;
          },
          "seconds"_a)
      .def("cancel", &TuningSession::cancel, nb::call_guard<GilReleased>())
      .def("close", &TuningSession::close, nb::call_guard<GilReleased>(),
           "Ends the helper processes; progress and result stay.")
      .def_prop_ro("finished", &TuningSession::finished)
      .def("progress", [](const TuningSession& self) { return fields_to_dict(self.progress()); })
      .def("result", [](const TuningSession& self) {
        const TuneResult& result = self.result();
        nb::dict answer;
        answer["stop_reason"] = result.stop_reason;
        answer["best"] = result.best;
        answer["object"] =
            result.object ? nb::object(nb::bytes(result.object->data(), result.object->size())) : nb::none();
        nb::list finals;
        for (const FinalTime& time : result.finals) {
          finals.append(nb::make_tuple(time.kind, time.record, time.seconds,
                                       nb::make_tuple(time.ratio.low, time.ratio.median, time.ratio.high)));
        }
        answer["finals"] = finals;
        answer["last_record"] = result.last_record;
        return answer;
      });
}

}  // namespace

void bind_search(nb::module_& m) {
  bind_database(m);
  bind_task_progress(m);
  bind_session(m);
  m.def("require_begun", &require_begun, "part"_a.none(),
        "Refuses an object of a subclass whose ``__init__`` has not called that of its base class.");
  m.def("flush_caches", [] {
    static CacheFlusher flusher;
    flusher.flush();
  });
  m.def(
      "allowance",
      [](const nb::bytes& expected, DataType dtype, int64_t reduction_length, std::optional<DataType> accumulated) {
        const Tolerance tolerance = tolerance_for(dtype, accumulated.value_or(dtype), reduction_length);
        const Allowance allowance = allowance_for(dtype, bytes_of(expected), tolerance);
        return nb::make_tuple(allowance.relative, allowance.absolute);
      },
      "expected"_a, "dtype"_a, "reduction_length"_a, "accumulated"_a = nb::none(),
      "(relative, absolute): by how much an element may differ, relative to itself plus absolutely. `accumulated` is "
      "the data type of the sums; None: that of the result.");
  m.def(
      "compare_arrays",
      [](const std::string& name, const nb::bytes& expected, const nb::bytes& got, DataType dtype,
         const std::vector<int64_t>& shape, int64_t reduction_length, std::optional<DataType> accumulated) {
        const Tolerance tolerance = tolerance_for(dtype, accumulated.value_or(dtype), reduction_length);
        const Allowance allowance = allowance_for(dtype, bytes_of(expected), tolerance);
        return check_result(name, dtype, shape, bytes_of(expected), bytes_of(got), allowance).message;
      },
      "name"_a, "expected"_a, "got"_a, "dtype"_a, "shape"_a, "reduction_length"_a, "accumulated"_a = nb::none(),
      "The first difference beyond the tolerance, or an empty string.");
}

}  // namespace tilewright::python
