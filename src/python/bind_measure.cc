// The measuring pipeline, for sessions that are driven from Python.
#include <nanobind/stl/map.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <cstring>

#include "python/measured_arguments.h"
#include "python/process_exit.h"
#include "python/search_components.h"
#include "search/measure/candidate.h"
#include "support/ranges.h"

namespace tilewright::python {

using namespace search;

std::span<const std::byte> bytes_of(const nb::bytes& bytes) {
  return {static_cast<const std::byte*>(bytes.data()), bytes.size()};
}

Result<std::shared_ptr<Arguments>> make_arguments(const nb::object& list, int64_t reduction_length) {
  std::vector<ArgumentSpec> specs;
  std::vector<int64_t> scalars;
  for (nb::handle item : list) {
    std::string role = nb::cast<std::string>(item[3]);
    if (role == "scalar") {
      auto bits = bytes_of(nb::cast<nb::bytes>(item[4]));
      std::memcpy(&scalars.emplace_back(), bits.data(), std::min(bits.size(), sizeof(int64_t)));
      continue;
    }
    ArgumentRole parsed = role == "input"    ? ArgumentRole::kInput
                          : role == "output" ? ArgumentRole::kOutput
                                             : ArgumentRole::kInOut;
    specs.push_back(
        {nb::cast<std::string>(item[0]), nb::cast<DataType>(item[1]), nb::cast<std::vector<int64_t>>(item[2]), parsed});
  }
  TW_TRY(arguments, Arguments::create(std::move(specs), std::move(scalars)));
  size_t index = 0;
  for (nb::handle item : list) {
    if (index == arguments->specs().size()) break;  // scalars come last
    const ArgumentSpec& spec = arguments->specs()[index];
    if (spec.role != ArgumentRole::kOutput) {
      TW_RETURN_IF_ERROR(arguments->set_initial(index, bytes_of(nb::cast<nb::bytes>(item[4]))));
    }
    if (spec.role != ArgumentRole::kInput) {
      Tolerance tolerance = tolerance_for(spec.dtype, nb::cast<DataType>(item[5]), reduction_length);
      TW_RETURN_IF_ERROR(arguments->set_tolerance(index, tolerance));
    }
    ++index;
  }
  return std::move(arguments);
}

Result<std::string> judge_in_python(const nb::callable& judge, Arguments& arguments) {
  nb::gil_scoped_acquire gil;
  try {
    nb::dict outputs;
    for (size_t i = 0; i < arguments.specs().size(); ++i) {
      const std::vector<std::byte>* values = arguments.expected(i);
      if (values) outputs[arguments.specs()[i].name.c_str()] = nb::bytes(values->data(), values->size());
    }
    auto [extent, rounding] = nb::cast<std::pair<std::string, std::map<std::string, double>>>(judge(outputs));
    for (size_t i = 0; i < arguments.specs().size(); ++i) {
      if (auto* more = find_value(rounding, arguments.specs()[i].name)) {
        arguments.loosen(i, *more);
      }
    }
    return std::move(extent);
  } catch (nb::python_error& error) {
    if (error.matches(PyExc_KeyboardInterrupt)) throw;
    Diagnostic diagnostic = diagnostic_of(error, "space/exception");
    diagnostic.blame = Blame::kInternal;
    return diagnostic;
  }
}

namespace {

constexpr uint64_t kReference = UINT64_MAX;

/// One program's candidates, built and measured while the caller goes on.
class PyPipeline {
 public:
  PyPipeline(const Ref<Module>& written, std::string function, const nb::object& arguments, nb::callable judge,
             int64_t reduction_length, const Target& target, const PipelineOptions& options)
      : function_(std::move(function)), target_(target), judge_(std::move(judge)) {
    unwrap(check_runs_here(target_));
    arguments_ = unwrap(make_arguments(arguments, reduction_length));
    GilReleased release;
    pipeline_ = unwrap(MeasurePipeline::start(arguments_, options));
    pipeline_->submit(unwrap(reference_candidate(kReference, written, target_, function_)));
  }

  uint64_t submit(const Ref<Module>& scheduled) {
    GilReleased release;
    pipeline_->submit(make_candidate(next_, unwrap(lower_candidate(scheduled, target_)), target_, function_));
    return next_++;
  }

  /// (number, outcome, seconds, error) of what is done; waits for the first at most so long.
  nb::list poll(double seconds) {
    const std::vector<Measured> done =
        gil_released([&] { return pipeline_->poll(std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000))); });
    raise_if_process_ends();
    nb::list result;
    for (const Measured& each : done) {
      if (each.id != kReference) {
        result.append(
            nb::make_tuple(each.id, std::string(outcome_name(each.outcome)), each.seconds, each.error.message));
      } else if (each.is_ok()) {
        unwrap(judge_in_python(judge_, *arguments_));
      } else if (each.outcome != Outcome::kCanceled) {
        throw Exception(reference_failure(function_, each));
      }
    }
    if (auto failure = pipeline_->failure()) throw Exception(*failure);
    return result;
  }

  void close() {
    GilReleased release;
    pipeline_.reset();
  }
  /// Seconds that helpers built, all together, checked results, and measured.
  std::map<std::string, double> beside() const {
    return pipeline_ ? pipeline_->activities().beside() : std::map<std::string, double>();
  }
  std::vector<int> pids() const { return pipeline_ ? pipeline_->helper_pids() : std::vector<int>(); }

 private:
  std::string function_;
  Target target_;
  nb::callable judge_;
  std::shared_ptr<Arguments> arguments_;
  std::unique_ptr<MeasurePipeline> pipeline_;
  uint64_t next_ = 0;
};

}  // namespace

void bind_measure(nb::module_& m) {
  nb::class_<PyPipeline>(m, "MeasurePipeline", "Builds and measures candidates of one program in helper processes.")
      .def(nb::init<const Ref<Module>&, std::string, const nb::object&, nb::callable, int64_t, const Target&,
                    const PipelineOptions&>(),
           nb::kw_only(), "written"_a, "function"_a, "arguments"_a, "judge"_a, "reduction_length"_a, "target"_a,
           "options"_a)
      .def("submit", &PyPipeline::submit, "scheduled"_a, "Takes a candidate on; gives its number.")
      .def("poll", &PyPipeline::poll, "seconds"_a,
           "(number, outcome, seconds, error) of what is done; waits for the first at most so long.",
           nb::sig("def poll(self, seconds: float) -> list[tuple[int, str, list[float], str]]"))
      .def("close", &PyPipeline::close, "Ends the helper processes.")
      .def_prop_ro("beside", &PyPipeline::beside,
                   "Seconds that helper processes were \"building\" (all together), \"checking\" and \"measuring\".")
      .def_prop_ro("pids", &PyPipeline::pids, "Of the helper processes that live.");
}

}  // namespace tilewright::python
