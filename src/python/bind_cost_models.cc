// Feature extractors and cost models. Matrices are arrays of NumPy on the side of Python.
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "python/process_exit.h"
#include "python/search_components.h"
#include "search/cost_model/analytical.h"
#include "search/cost_model/forgiving.h"
#include "search/features/per_store_features.h"
#include "search/warnings.h"

namespace tilewright::python {
namespace {

using search::CostModel;
using search::FeatureExtractor;
using search::FeatureMatrix;
using search::MeasureCandidate;
using search::RunnerResult;
using search::TuneContext;

using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

/// An array in whatever form Python has it, also one that gives NumPy's by numpy().
Numbers numbers_of(nb::handle object) {
  nb::object array = nb::hasattr(object, "numpy") ? object.attr("numpy")() : nb::borrow(object);
  return nb::cast<Numbers>(nb::module_::import_("numpy").attr("ascontiguousarray")(array, "float64"));
}

nb::object array_of(std::vector<double> values, std::vector<size_t> shape) {
  auto* kept = new std::vector<double>(std::move(values));
  nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<std::vector<double>*>(pointer); });
  return nb::cast(nb::ndarray<nb::numpy, double>(kept->data(), shape.size(), shape.data(), owner));
}

nb::list matrices_to_python(std::vector<FeatureMatrix> matrices) {
  nb::list result;
  for (FeatureMatrix& matrix : matrices) {
    std::vector<size_t> shape{matrix.rows, matrix.columns};
    result.append(array_of(std::move(matrix.values), shape));
  }
  return result;
}

Result<std::vector<FeatureMatrix>> matrices_of(nb::handle answer, size_t count) {
  std::vector<FeatureMatrix> result;
  for (nb::handle item : answer) {
    Numbers array = numbers_of(item);
    if (array.ndim() != 2) {
      return argument_error(
          "features/shape",
          "features of a candidate are a matrix, not an array of " + std::to_string(array.ndim()) + " dimensions",
          "a row for each store, a column for each feature");
    }
    result.push_back({array.shape(0), array.shape(1), {array.data(), array.data() + array.size()}});
  }
  if (result.size() != count) {
    return argument_error("features/count",
                          "extract_from() gave features of " + std::to_string(result.size()) + " candidates, not of " +
                              std::to_string(count),
                          "answer one matrix for each candidate, in their order");
  }
  return result;
}

/// What is to be judged, of objects with the attribute `sch`.
std::vector<MeasureCandidate> candidates_of(nb::handle list) {
  std::vector<MeasureCandidate> result;
  for (nb::handle item : items_of("candidates", list, "candidates")) {
    SchedulePtr schedule;
    nb::object attribute = nb::getattr(item, "sch", nb::none());
    if (!nb::try_cast(attribute, schedule) || !schedule) {
      fail(argument_error("search/candidate",
                          "a candidate has a schedule as its attribute 'sch'; this is " + class_name(item),
                          "give ms.MeasureCandidate(schedule, args_info)"));
    }
    result.push_back({schedule->schedule, {}});
  }
  return result;
}

nb::list candidates_to_python(const std::vector<MeasureCandidate>& candidates) {
  nb::list result;
  for (const MeasureCandidate& candidate : candidates) result.append(nb::cast(candidate));
  return result;
}

struct PythonExtractor final : FeatureExtractor {
  NB_TRAMPOLINE(FeatureExtractor);
  Result<std::vector<FeatureMatrix>> extract_from(const TuneContext& context,
                                                  const std::vector<MeasureCandidate>& candidates) override {
    return in_python("features/exception", [&]() -> Result<std::vector<FeatureMatrix>> {
      nb::object extract = overridden<FeatureExtractor>(this, "extract_from");
      return matrices_of(extract(context_to_python(context), candidates_to_python(candidates)), candidates.size());
    });
  }
};

struct PythonCostModel final : CostModel {
  NB_TRAMPOLINE(CostModel);
  Status load(const std::string& path) override {
    return in_python("cost_model/exception", [&]() -> Status {
      overridden<CostModel>(this, "load")(path);
      return Ok{};
    });
  }
  Status save(const std::string& path) override {
    return in_python("cost_model/exception", [&]() -> Status {
      overridden<CostModel>(this, "save")(path);
      return Ok{};
    });
  }
  Status update(const TuneContext& context, const std::vector<MeasureCandidate>& candidates,
                const std::vector<RunnerResult>& results) override {
    return in_python("cost_model/exception", [&]() -> Status {
      nb::object make = nb::module_::import_("tilewright.meta_schedule.runner").attr("RunnerResult");
      nb::list list;
      for (const RunnerResult& result : results) {
        nb::object seconds = result.error_msg ? nb::none() : nb::cast(result.run_secs);
        list.append(make(seconds, result.error_msg ? nb::cast(*result.error_msg) : nb::none()));
      }
      overridden<CostModel>(this, "update")(context_to_python(context), candidates_to_python(candidates), list);
      return Ok{};
    });
  }
  Result<std::vector<double>> predict(const TuneContext& context,
                                      const std::vector<MeasureCandidate>& candidates) override {
    return in_python("cost_model/exception", [&]() -> Result<std::vector<double>> {
      not_left_out("predict");
      // As models that rank together ask one another.
      nb::object scores_from =
          nb::module_::import_("tilewright.meta_schedule.cost_model.features_of").attr("scores_from");
      nb::object model = nb::find(static_cast<const CostModel*>(this));
      Numbers scores = numbers_of(scores_from(model, context_to_python(context), candidates_to_python(candidates)));
      std::vector<double> values(scores.data(), scores.data() + scores.size());
      const auto missing = std::ranges::count_if(values, [](double score) { return std::isnan(score); });
      if (missing > 0) {
        warnings_.once("nan", fmt::format("predict() of a '{}' gave nan for {} of {} candidates, which are ranked last",
                                          class_name(model), missing, values.size()));
      }
      return values;
    });
  }

 private:
  void not_left_out(const char* method) const {
    if (!overrides<CostModel>(this, method)) not_defined<CostModel>(this, method);
  }
  search::Warnings warnings_;
};

/// As those in C++ see it, who get data whatever a subclass in Python does.
nb::list check(FeatureExtractor& self, const TuneContext& context, nb::handle candidates) {
  std::vector<MeasureCandidate> given = candidates_of(candidates);
  auto matrices = [&] {
    GilReleased release;
    return self.extract_from(context, given);
  }();
  return matrices_to_python(unwrap(std::move(matrices)));
}

nb::list extract(FeatureExtractor& self, const TuneContext& context, nb::handle candidates) {
  if (auto* python = dynamic_cast<PythonExtractor*>(&self)) not_defined<FeatureExtractor>(python, "extract_from");
  return check(self, context, candidates);
}

nb::object predict(CostModel& self, const TuneContext& context, nb::handle candidates) {
  if (auto* python = dynamic_cast<PythonCostModel*>(&self)) not_defined<CostModel>(python, "predict");
  std::vector<MeasureCandidate> given = candidates_of(candidates);
  auto scores = [&] {
    GilReleased release;
    return self.predict(context, given);
  }();
  std::vector<double> values = unwrap(std::move(scores));
  std::vector<size_t> shape{values.size()};
  return array_of(std::move(values), shape);
}

/// For the methods that a subclass may leave out and still be asked for by name.
CostModel& native(CostModel& self, const char* method) {
  if (auto* python = dynamic_cast<PythonCostModel*>(&self)) not_defined<CostModel>(python, method);
  return self;
}

void bind_extractors(nb::module_& m) {
  nb::class_<FeatureExtractor, PythonExtractor>(
      m, "FeatureExtractor", "Numbers that describe candidates. Subclasses define extract_from(context, candidates).")
      .def(nb::init<>())
      .def("extract_from", &extract, nb::arg("context"), nb::arg("candidates"),
           "One matrix of float64 for each candidate.",
           nb::sig("def extract_from(self, context: Any, candidates: Sequence[Any]) -> list[Any]"))
      .def("check", &check, nb::arg("context"), nb::arg("candidates"),
           "The same, where what a subclass gives is checked: one matrix of numbers for each candidate.",
           nb::sig("def check(self, context: Any, candidates: Sequence[Any]) -> list[Any]"))
      .def_static(
          "create",
          [](const std::string& kind, const nb::args& args, const nb::kwargs& kwargs) {
            return nb::module_::import_("tilewright.meta_schedule.feature_extractor")
                .attr("create")(kind, *args, **kwargs);
          },
          nb::arg("kind"), nb::arg("args"), nb::arg("kwargs"), "An extractor by name: \"per-store-feature\".");
  nb::class_<search::PerStoreFeature, FeatureExtractor>(m, "PerStoreFeature",
                                                        "A row of 164 numbers for each buffer that is stored to.")
      .def(nb::new_([](int buffers_per_store, int arith_intensity_curve_num_samples, int64_t cache_line_bytes,
                       bool extract_workload) {
             return unwrap(search::PerStoreFeature::create(
                 {buffers_per_store, arith_intensity_curve_num_samples, cache_line_bytes, extract_workload}));
           }),
           nb::arg("buffers_per_store") = 5, nb::arg("arith_intensity_curve_num_samples") = 10,
           nb::arg("cache_line_bytes") = 64, nb::arg("extract_workload") = false)
      .def_prop_ro(
          "feature_vector_length", [](const search::PerStoreFeature& self) { return self.options().columns(); },
          "Columns of the matrices.");
}

nb::dict cost_dict(const Ref<Module>& module, const std::string& target) {
  search::CostEstimate cost = search::estimate_cost(module, unwrap(Target::parse(target)));
  nb::dict result;
  result["seconds"] = cost.seconds;
  result["compute"] = cost.compute;
  result["memory"] = cost.memory;
  result["overhead"] = cost.overhead;
  result["spilled_registers"] = cost.spilled_registers;
  result["parallel_chunks"] = cost.parallel_chunks;
  return result;
}

}  // namespace

void bind_cost_models(nb::module_& m) {
  bind_extractors(m);
  nb::class_<CostModel, PythonCostModel>(
      m, "CostModel", "Tells good candidates from bad ones. Subclasses define load, save, update and predict.")
      .def(nb::init<>())
      .def(
          "load", [](CostModel& self, const std::string& path) { unwrap_status(native(self, "load").load(path)); },
          nb::arg("path"), "What save() wrote.")
      .def(
          "save", [](CostModel& self, const std::string& path) { unwrap_status(native(self, "save").save(path)); },
          nb::arg("path"), "What it has learned, into a file.")
      .def(
          "update",
          [](CostModel& self, const TuneContext& context, nb::handle candidates, nb::handle results) {
            std::vector<MeasureCandidate> given = candidates_of(candidates);
            const size_t count = given.size();
            unwrap_status(native(self, "update").update(context, given, results_of(results, count)));
          },
          nb::arg("context"), nb::arg("candidates"), nb::arg("results"), "Learns from measurements.",
          nb::sig("def update(self, context: Any, candidates: Sequence[Any], results: Sequence[Any]) -> None"))
      .def("predict", &predict, nb::arg("context"), nb::arg("candidates"),
           "A score for each candidate, float64: the greater, the faster.",
           nb::sig("def predict(self, context: Any, candidates: Sequence[Any]) -> Any"))
      .def_static(
          "create",
          [](const std::string& kind, const nb::args& args, const nb::kwargs& kwargs) {
            return nb::module_::import_("tilewright.meta_schedule.cost_model").attr("create")(kind, *args, **kwargs);
          },
          nb::arg("kind"), nb::arg("args"), nb::arg("kwargs"),
          "A model by name: \"xgb\", \"mlp\", \"random\", \"analytical\", \"residual\"; \"none\" gives None.");
  nb::class_<search::ForgivingModel, CostModel>(
      m, "ForgivingModel",
      "Ranks as a model does until that fails: that is told once, and then all candidates are alike.")
      .def(
          "__init__",
          [](search::ForgivingModel* self, std::shared_ptr<CostModel> model, nb::callable tell) {
            auto held = std::make_shared<HeldCallable>(std::move(tell));
            new (self) search::ForgivingModel(std::move(model), [held](const Diagnostic& error) {
              nb::gil_scoped_acquire gil;
              held->callable(error.message);
            });
          },
          nb::arg("model"), nb::arg("tell"),
          "The model, but for its errors.\n\nArgs:\n    model: the one that is asked.\n"
          "    tell: receives a text, once.",
          nb::sig("def __init__(self, model: CostModel, tell: Callable[[str], object]) -> None"))
      .def(
          "give_up",
          [](search::ForgivingModel& self, const std::string& text) {
            self.give_up(resource_error("tune/cost-model", text));
          },
          nb::arg("text"), "The model failed where somebody else called it.\n\nArgs:\n    text: of the error.");
  nb::class_<search::AnalyticalModel, CostModel>(
      m, "AnalyticalModel", "Estimates by what limits a processor; learns nothing. Scores are calls a second.")
      .def(nb::init<>());
  m.def("estimate_cost", &cost_dict, nb::arg("module"), nb::arg("target"),
        "Where the time of a program is expected to go, in seconds.");
}

}  // namespace tilewright::python
