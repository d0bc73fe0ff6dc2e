// Feature extractors and cost models. Matrices are arrays of NumPy on the side of Python.
#include <nanobind/ndarray.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "python/part.h"
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
using search::MeasureCandidates;
using search::RunnerResult;
using search::RunnerResults;
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

/// Converts objects with the attribute `sch` to candidates.
MeasureCandidates candidates_of(nb::handle list) {
  MeasureCandidates result;
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

constexpr char kFeaturesException[] = "features/exception", kCostModelException[] = "cost_model/exception";

struct PythonExtractor final : PythonClass<FeatureExtractor, kFeaturesException> {
  Result<std::vector<FeatureMatrix>> extract_from(const TuneContext& context,
                                                  const MeasureCandidates& candidates) override {
    return call("extract_from", [&](const nb::object& extract) {
      return matrices_of(extract(context_to_python(context), candidates), candidates.size());
    });
  }
};

struct PythonCostModel final : PythonClass<CostModel, kCostModelException> {
  Status load(const std::string& path) override {
    return call("load", [&](const nb::object& method) { method(path); });
  }
  Status save(const std::string& path) override {
    return call("save", [&](const nb::object& method) { method(path); });
  }
  Status update(const TuneContext& context, const MeasureCandidates& candidates,
                const RunnerResults& results) override {
    return call("update", [&](const nb::object& method) {
      nb::object make = nb::module_::import_("tilewright.meta_schedule.runner").attr("RunnerResult");
      nb::list list;
      for (const RunnerResult& result : results) {
        list.append(make(result.error_msg ? nb::none() : nb::cast(result.run_secs), result.error_msg));
      }
      method(context_to_python(context), candidates, list);
    });
  }
  Result<std::vector<double>> predict(const TuneContext& context, const MeasureCandidates& candidates) override {
    return call("predict", [&](const nb::object&) -> Result<std::vector<double>> {
      // scores_from() also checks the scores of models that rank for several tasks.
      nb::object scores_from = nb::module_::import_("tilewright.cost_model.features_of").attr("scores_from");
      Numbers scores = numbers_of(scores_from(nb::find(self()), context_to_python(context), candidates));
      std::vector<double> values(scores.data(), scores.data() + scores.size());
      const auto missing = std::ranges::count_if(values, [](double score) { return std::isnan(score); });
      if (missing > 0) {
        warnings_.once("nan", fmt::format("predict() of a '{}' gave nan for {} of {} candidates, which are ranked last",
                                          class_of_self(), missing, values.size()));
      }
      return values;
    });
  }

 private:
  search::Warnings warnings_;
};

/// Extracts features through the C++ interface, which checks what a subclass in Python returns.
nb::list check(FeatureExtractor& self, const TuneContext& context, nb::handle candidates) {
  MeasureCandidates given = candidates_of(candidates);
  return matrices_to_python(unwrap(gil_released([&] { return self.extract_from(context, given); })));
}

nb::list extract(FeatureExtractor& self, const TuneContext& context, nb::handle candidates) {
  require_native(self, "extract_from");
  return check(self, context, candidates);
}

nb::object predict(CostModel& self, const TuneContext& context, nb::handle candidates) {
  require_native(self, "predict");
  MeasureCandidates given = candidates_of(candidates);
  std::vector<double> values = unwrap(gil_released([&] { return self.predict(context, given); }));
  std::vector<size_t> shape{values.size()};
  return array_of(std::move(values), shape);
}

/// Checks methods that a Python subclass may omit, although they can be called by name.
CostModel& native(CostModel& self, const char* method) {
  require_native(self, method);
  return self;
}

void bind_extractors(nb::module_& m) {
  nb::class_<FeatureExtractor, PythonExtractor>(
      m, "FeatureExtractor", "Numbers that describe candidates. Subclasses define extract_from(context, candidates).")
      .def(nb::init<>())
      .def("extract_from", &extract, "context"_a, "candidates"_a, "One matrix of float64 for each candidate.",
           nb::sig("def extract_from(self, context: Any, candidates: Sequence[Any]) -> list[Any]"))
      .def("check", &check, "context"_a, "candidates"_a,
           "The same, where what a subclass gives is checked: one matrix of numbers for each candidate.",
           nb::sig("def check(self, context: Any, candidates: Sequence[Any]) -> list[Any]"))
      .def_static(
          "create",
          [](const std::string& kind, const nb::args& args, const nb::kwargs& kwargs) {
            return nb::module_::import_("tilewright.cost_model.feature_extractor")
                .attr("create")(kind, *args, **kwargs);
          },
          "kind"_a, "args"_a, "kwargs"_a, "An extractor by name: \"per-store-feature\".");
  part<search::PerStoreFeature>(m, "A row of 164 numbers for each buffer that is stored to.")
      .def_prop_ro(
          "feature_vector_length", [](const search::PerStoreFeature& self) { return self.options().columns(); },
          "Columns of the matrices.");
}

nb::dict cost_dict(const Ref<Module>& module, const std::string& target) {
  return fields_to_dict(search::estimate_cost(module, unwrap(Target::parse(target))));
}

nb::dict machine_model() {
  nb::dict numbers;
#define TW_MACHINE(name, value) numbers[#name] = double{value};
#include "target/machine_model.def"
#undef TW_MACHINE
  return numbers;
}

}  // namespace

void bind_cost_models(nb::module_& m) {
  bind_extractors(m);
  nb::class_<CostModel, PythonCostModel>(
      m, "CostModel", "Predicts which candidates are fast. Subclasses define load, save, update and predict.")
      .def(nb::init<>())
      .def(
          "load", [](CostModel& self, const std::string& path) { return native(self, "load").load(path); }, "path"_a,
          "What save() wrote.")
      .def(
          "save", [](CostModel& self, const std::string& path) { return native(self, "save").save(path); }, "path"_a,
          "What it has learned, into a file.")
      .def(
          "update",
          [](CostModel& self, const TuneContext& context, nb::handle candidates, nb::handle results) {
            MeasureCandidates given = candidates_of(candidates);
            const size_t count = given.size();
            return native(self, "update").update(context, given, results_of(results, count));
          },
          "context"_a, "candidates"_a, "results"_a, "Learns from measurements.",
          nb::sig("def update(self, context: Any, candidates: Sequence[Any], results: Sequence[Any]) -> None"))
      .def("predict", &predict, "context"_a, "candidates"_a,
           "A score for each candidate, float64: the greater, the faster.",
           nb::sig("def predict(self, context: Any, candidates: Sequence[Any]) -> Any"))
      .def_static(
          "create",
          [](const std::string& kind, const nb::args& args, const nb::kwargs& kwargs) {
            return nb::module_::import_("tilewright.cost_model").attr("create")(kind, *args, **kwargs);
          },
          "kind"_a, "args"_a, "kwargs"_a,
          "A model by name: \"xgb\", \"mlp\", \"random\", \"analytical\", \"residual\"; \"none\" gives None.");
  nb::class_<search::ForgivingModel, CostModel>(
      m, "ForgivingModel",
      "Ranks as a model does until that fails. The first failure is reported, and after it all candidates are equal.")
      .def(
          "__init__",
          [](search::ForgivingModel* self, std::shared_ptr<CostModel> model, nb::callable report) {
            auto held = std::make_shared<HeldCallable>(std::move(report));
            new (self) search::ForgivingModel(std::move(model), [held](const Diagnostic& error) {
              nb::gil_scoped_acquire gil;
              held->callable(error.message);
            });
          },
          "model"_a, "report"_a,
          "The model, but for its errors.\n\nArgs:\n    model: the wrapped model.\n"
          "    report: receives the message of the first error.",
          nb::sig("def __init__(self, model: CostModel, report: Callable[[str], object]) -> None"))
      .def(
          "give_up",
          [](search::ForgivingModel& self, const std::string& text) {
            self.give_up(resource_error("tune/cost-model", text));
          },
          "text"_a, "The model failed where somebody else called it.\n\nArgs:\n    text: of the error.");
  nb::class_<search::AnalyticalModel, CostModel>(
      m, "AnalyticalModel", "Estimates by what limits a processor; learns nothing. Scores are calls a second.")
      .def(nb::init<>());
  m.def("estimate_cost", &cost_dict, "module"_a, "target"_a,
        "Where the time of a program is expected to go, in seconds.");
  m.def("machine_model", &machine_model, nb::sig("def machine_model() -> dict[str, float]"),
        "What estimates assume of one core: the table src/target/machine_model.def.");
}

}  // namespace tilewright::python
