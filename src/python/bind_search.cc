// The tuner.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>

#include "python/database_objects.h"
#include "python/measured_arguments.h"
#include "python/process_exit.h"
#include "python/search_components.h"
#include "search/measure/slice_timer.h"
#include "search/tuner.h"

namespace tilewright::python {
namespace {

using namespace search;

/// Keeps the tuner's calls off the GIL.
struct PyTuner {
  std::unique_ptr<Tuner> tuner;
};

std::unique_ptr<PyTuner> start_tuner(const Ref<Module>& module, const std::string& function, const std::string& name,
                                     const std::string& script, const Hash128& workload, const std::string& sizes,
                                     const Hash128& space, const TuneContext& context,
                                     std::shared_ptr<CostModel> cost_model, std::vector<std::string> relatives,
                                     const nb::callable& arguments, const nb::callable& judge_reference,
                                     int64_t reduction_length, std::shared_ptr<Database> database, int64_t trials,
                                     double seconds, int64_t patience, double target_seconds, double bound_seconds,
                                     uint64_t seed, int threads, const std::string& target, bool cold, bool fresh,
                                     double reference_timeout, const std::string& host, const std::string& versions,
                                     const std::string& heuristic) {
  TuneTask task;
  task.module = module;
  task.function = function;
  task.name = name;
  task.script = script;
  task.workload = workload;
  task.sizes = sizes;
  task.space = space;
  task.context = context;
  task.cost_model = std::move(cost_model);
  task.relatives = std::move(relatives);
  task.heuristic = heuristic;
  task.arguments = [&arguments, reduction_length]() -> Result<std::shared_ptr<Arguments>> {
    nb::gil_scoped_acquire gil;
    return make_arguments(arguments(), reduction_length);
  };
  task.judge_reference = [judge = std::make_shared<HeldCallable>(judge_reference)](Arguments& values) {
    return judge_in_python(judge->callable, values);
  };
  TunerOptions options;
  options.trials = trials;
  options.seconds = seconds;
  options.patience = patience;
  options.target_seconds = target_seconds;
  options.bound_seconds = bound_seconds;
  options.seed = seed;
  options.fresh = fresh;
  options.target = unwrap(Target::parse(target)).with_num_cores(threads);
  options.pipeline.threads = threads;
  options.pipeline.cold = cold;
  options.pipeline.reference_timeout = reference_timeout;
  options.host = host;
  options.versions = versions;
  auto result = std::make_unique<PyTuner>();
  auto started = [&] {
    GilReleased release;
    return Tuner::start(std::move(task), std::move(options), std::move(database));
  }();
  result->tuner = unwrap(std::move(started));
  return result;
}

nb::dict reasons_dict(const std::map<std::string, std::pair<int64_t, std::string>>& reasons) {
  nb::dict result;
  for (const auto& [code, entry] : reasons) result[code.c_str()] = nb::make_tuple(entry.first, entry.second);
  return result;
}

nb::dict progress_dict(const TuneProgress& p) {
  nb::dict outcomes;
  for (const auto& [name, count] : p.outcomes) outcomes[name.c_str()] = count;
  nb::dict seconds;
  for (const auto& [name, spent] : p.seconds) seconds[name.c_str()] = spent;
  nb::dict beside;
  for (const auto& [name, spent] : p.beside) beside[name.c_str()] = spent;
  nb::dict result;
  result["trials"] = p.trials;
  result["total"] = p.total;
  result["earlier"] = p.earlier;
  result["best_seconds"] = p.best_seconds;
  result["best_index"] = p.best_index;
  result["elapsed"] = p.elapsed;
  result["outcomes"] = outcomes;
  result["failures"] = reasons_dict(p.failures);
  result["refusals"] = reasons_dict(p.refusals);
  result["attempts"] = p.attempts;
  result["refused"] = p.refused;
  result["duplicates"] = p.duplicates;
  result["reference_seconds"] = p.reference_seconds;
  result["median_build_seconds"] = p.median_build_seconds;
  result["seconds"] = seconds;
  result["beside"] = beside;
  result["phase"] = p.phase;
  return result;
}

void bind_tuner(nb::module_& m) {
  nb::class_<PyTuner>(m, "Tuner", "A search in progress; tilewright.search drives it.")
      .def(nb::new_(&start_tuner), nb::kw_only(), nb::arg("module"), nb::arg("function"), nb::arg("name"),
           nb::arg("script"), nb::arg("workload"), nb::arg("sizes"), nb::arg("space"), nb::arg("context"),
           nb::arg("cost_model").none(), nb::arg("relatives"), nb::arg("arguments"), nb::arg("judge_reference"),
           nb::arg("reduction_length"), nb::arg("database"), nb::arg("trials"), nb::arg("seconds"), nb::arg("patience"),
           nb::arg("target_seconds"), nb::arg("bound_seconds"), nb::arg("seed"), nb::arg("threads"), nb::arg("target"),
           nb::arg("cold"), nb::arg("fresh"), nb::arg("reference_timeout"), nb::arg("host"), nb::arg("versions"),
           nb::arg("heuristic"))
      .def(
          "step",
          [](PyTuner& self, double seconds) {
            Status status = [&] {
              GilReleased release;
              return self.tuner->step(seconds);
            }();
            raise_if_process_ends();
            unwrap_status(std::move(status));
          },
          nb::arg("seconds"))
      .def("cancel",
           [](PyTuner& self) {
             GilReleased release;
             self.tuner->cancel();
           })
      .def(
          "close",
          [](PyTuner& self) {
            GilReleased release;
            self.tuner->close();
          },
          "Ends the helper processes; progress and result stay.")
      .def_prop_ro("finished", [](const PyTuner& self) { return self.tuner->finished(); })
      .def("progress", [](const PyTuner& self) { return progress_dict(self.tuner->progress()); })
      .def("result", [](const PyTuner& self) {
        const TuneResult& result = self.tuner->result();
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
  bind_tuner(m);
  m.def("require_begun", &require_begun, nb::arg("part").none(),
        "Refuses an object of a subclass whose ``__init__`` has not called that of its base class.");
  m.def("flush_caches", [] {
    static CacheFlusher flusher;
    flusher.flush();
  });
  m.def(
      "allowance",
      [](const nb::bytes& expected, DataType dtype, int64_t reduction_length) {
        Allowance allowance = allowance_for(dtype, bytes_of(expected), tolerance_for(dtype, dtype, reduction_length));
        return nb::make_tuple(allowance.relative, allowance.absolute);
      },
      nb::arg("expected"), nb::arg("dtype"), nb::arg("reduction_length"),
      "(relative, absolute): by how much an element may differ, relative to itself plus absolutely.");
  m.def(
      "compare_arrays",
      [](const std::string& name, const nb::bytes& expected, const nb::bytes& got, DataType dtype,
         const std::vector<int64_t>& shape, int64_t reduction_length) {
        Allowance allowance = allowance_for(dtype, bytes_of(expected), tolerance_for(dtype, dtype, reduction_length));
        return check_result(name, dtype, shape, bytes_of(expected), bytes_of(got), allowance).message;
      },
      nb::arg("name"), nb::arg("expected"), nb::arg("got"), nb::arg("dtype"), nb::arg("shape"),
      nb::arg("reduction_length"), "The first difference beyond the tolerance, or an empty string.");
}

}  // namespace tilewright::python
