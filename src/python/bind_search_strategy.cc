// Strategies and what they hand out. Databases are Python objects: whatever has commit_workload() and get_top_k().
#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/trampoline.h>

#include "python/part.h"
#include "python/schedule_objects.h"
#include "search/module_equality.h"
#include "search/renamed_trace.h"
#include "search/strategy/evolutionary_search.h"
#include "search/strategy/guided_search.h"
#include "search/strategy/replay_func.h"
#include "search/strategy/replay_trace.h"

namespace tilewright::python {
namespace {

using namespace search;
/// A database in Python: `module_equality` ("structural" where it is missing), commit_workload(module),
/// get_top_k(workload, count) with records that have `trace` and `run_secs`.
class PythonTuningDatabase final : public TuningDatabase {
 public:
  explicit PythonTuningDatabase(nb::object object) : object_(std::move(object)) {}
  ~PythonTuningDatabase() override {
    nb::gil_scoped_acquire gil;
    object_.reset();
  }
  const nb::object& object() const { return object_; }
  ModuleEquality module_equality() const override {
    nb::gil_scoped_acquire gil;
    nb::object name = nb::getattr(object_, "module_equality", nb::none());
    if (!nb::isinstance<nb::str>(name)) return ModuleEquality::kStructural;
    return unwrap(parse_module_equality(nb::cast<std::string>(name)));
  }
  Result<std::vector<TuningRecord>> top_k(const Ref<Module>& module, size_t count) override {
    return in_python("database/exception", [&]() -> Result<std::vector<TuningRecord>> {
      nb::object workload = object_.attr("commit_workload")(module);
      // How a user's database identifies programs is up to that database.
      if (workload.is_none()) return wrong("commit_workload", workload, "it gives the Workload");
      std::vector<TuningRecord> records;
      nb::object given = object_.attr("get_top_k")(workload, count);
      if (!nb::isinstance<nb::list>(given) && !nb::isinstance<nb::tuple>(given))
        return wrong("get_top_k", given, kRecords);
      for (nb::handle record : given) {
        if (!nb::hasattr(record, "trace") || !nb::hasattr(record, "run_secs"))
          return wrong("get_top_k", record, kRecords);
        TuningRecord copy{nb::cast<const PyTrace&>(record.attr("trace")).trace, {}};
        nb::object seconds = record.attr("run_secs");
        if (!seconds.is_none()) {
          for (nb::handle item : seconds) copy.run_secs.push_back(nb::cast<double>(nb::float_(item)));
        }
        // An equal program, whose blocks may have other names.
        if (Ref<Module> entry = program_of(nb::getattr(record, "workload", workload)); entry.defined())
          copy.trace = as_named_in(module, entry, copy.trace);
        records.push_back(std::move(copy));
      }
      return records;
    });
  }

 private:
  /// Null where a user's database has entries of another kind.
  static Ref<Module> program_of(nb::handle workload) {
    Ref<Module> program;
    nb::object given = nb::getattr(workload, "mod", nb::none());
    return nb::try_cast(given, program) ? program : Ref<Module>();
  }

  static constexpr const char* kRecords = "it gives a list of TuningRecord, the best first";

  Diagnostic wrong(const char* method, nb::handle given, const char* hint) const {
    return argument_error("database/answer",
                          fmt::format("{}() of a '{}' gave a '{}'", method, class_name(object_), class_name(given)),
                          hint);
  }
  nb::object object_;
};

/// `name` says whose they are.
MeasureCandidates candidates_of(const char* name, nb::handle given, const char* hint) {
  MeasureCandidates candidates;
  for (nb::handle item : items_of(name, given, "MeasureCandidates")) {
    if (!nb::isinstance<MeasureCandidate>(item)) {
      fail(argument_error("search/candidate",
                          fmt::format("{}: a MeasureCandidate was expected, not a '{}'", name, class_name(item)),
                          hint));
    }
    candidates.push_back(nb::cast<const MeasureCandidate&>(item));
  }
  return candidates;
}

TuningPlan plan_of(int64_t max_trials, int64_t num_trials_per_iter, const nb::object& design_spaces,
                   const nb::object& database, const nb::object& cost_model) {
  auto spaces = unwrap(schedules_of(design_spaces, "design_spaces has", "it is a list of schedules"));
  TuningPlan plan{max_trials, num_trials_per_iter, std::move(spaces), nullptr, nullptr};
  if (!database.is_none()) plan.database = std::make_shared<PythonTuningDatabase>(database);
  if (!cost_model.is_none()) plan.cost_model = cost_model_of(cost_model);
  return plan;
}

constexpr char kStrategyException[] = "strategy/exception";

struct PythonSearchStrategy final : PythonPart<SearchStrategy, kStrategyException> {
  Status pre_tuning(TuningPlan plan) override {
    return call("pre_tuning", [&](const nb::object& method) {
      nb::list spaces;
      for (schedule::Schedule& space : plan.design_spaces) spaces.append(python::to_python(std::move(space)));
      const auto* database = dynamic_cast<const PythonTuningDatabase*>(plan.database.get());
      method(plan.max_trials, plan.num_trials_per_iter, spaces, database ? database->object() : nb::none(),
             plan.cost_model);
    });
  }
  Result<std::optional<MeasureCandidates>> generate_measure_candidates() override {
    return call("generate_measure_candidates",
                [&](const nb::object& method) -> Result<std::optional<MeasureCandidates>> {
                  nb::object answer = method();
                  if (answer.is_none()) return std::optional<MeasureCandidates>();
                  const std::string who = "the answer of generate_measure_candidates() of a '" + class_of_self() + "'";
                  return std::optional(candidates_of(who.c_str(), answer, "None says that the search is over"));
                });
  }
  Status notify_runner_results(const MeasureCandidates& candidates, const RunnerResults& results) override {
    return call("notify_runner_results", [&](const nb::object& method) {
      nb::object result_class = nb::module_::import_("tilewright.meta_schedule.runner").attr("RunnerResult");
      nb::list list;
      for (const RunnerResult& result : results) list.append(result_class(result.run_secs, result.error_msg));
      method(candidates, list);
    });
  }
  Status post_tuning() override {
    return call("post_tuning", [&](const nb::object& method) { method(); });
  }
  bool runs_ahead() const override {
    nb::gil_scoped_acquire gil;
    if (!overrides(self(), "runs_ahead")) return false;
    try {
      return truth_of(nb::find(self()).attr("runs_ahead")());
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("runs_ahead()");
      return false;
    }
  }
};

nb::object generate(SearchStrategy& self) {
  require_native(self, "generate_measure_candidates");
  return nb::cast(unwrap(gil_released([&] { return self.generate_measure_candidates(); })));
}

nb::class_<SearchStrategy, PythonSearchStrategy> bind_strategy_base(nb::module_& m) {
  nb::class_<SearchStrategy, PythonSearchStrategy> cls(
      m, "SearchStrategy",
      "Which candidates are measured, and in which order. Subclasses define pre_tuning(), "
      "generate_measure_candidates(), notify_runner_results() and post_tuning().");
  cls.def_prop_ro("seconds_by_scope", &SearchStrategy::seconds,
                  "Where the time of generate_measure_candidates() went, by the published names; none counts twice.");
  cls.def(nb::init<>())
      .def("initialize", &initialize_part<SearchStrategy>, "context"_a, "Called once, before the first search.")
      .def(
          "pre_tuning",
          [](SearchStrategy& self, int64_t max_trials, int64_t num_trials_per_iter, const nb::object& design_spaces,
             const nb::object& database, const nb::object& cost_model) {
            require_native(self, "pre_tuning");
            return self.pre_tuning(plan_of(max_trials, num_trials_per_iter, design_spaces, database, cost_model));
          },
          "max_trials"_a, "num_trials_per_iter"_a, "design_spaces"_a, "database"_a = nb::none(),
          "cost_model"_a = nb::none(),
          "Start a search.\n\nArgs:\n    max_trials: how many candidates are measured at most.\n"
          "    num_trials_per_iter: how many candidates a batch has.\n"
          "    design_spaces: schedules whose decisions are varied.\n"
          "    database: of measurements; None for none.\n"
          "    cost_model: predicts which candidates are fast; None for chance.",
          nb::sig("def pre_tuning(self, max_trials: int, num_trials_per_iter: int, design_spaces: Sequence[Schedule], "
                  "database: Any = None, cost_model: Any = None) -> None"))
      .def_prop_ro("takes_parts", &SearchStrategy::takes_parts,
                   "Whether results of a batch may be reported in parts, and the next batch be requested between them.")
      .def(
          "runs_ahead",
          [](const SearchStrategy& self) {
            // Subclasses in Python that do not define it have this value.
            return !is_of_python(self) && self.runs_ahead();
          },
          "Whether the next batch may be requested while the last one is being measured. Results are then reported in "
          "the "
          "order of batches, one batch later. tw.tune() does so.")
      .def("generate_measure_candidates", &generate,
           "The next batch of candidates, which may be empty; None: the search is over.",
           nb::sig("def generate_measure_candidates(self) -> list[MeasureCandidate] | None"))
      .def(
          "notify_runner_results",
          [](SearchStrategy& self, nb::handle measure_candidates, nb::handle results) {
            require_native(self, "notify_runner_results");
            const MeasureCandidates candidates = candidates_of("measure_candidates", measure_candidates,
                                                               "give back what generate_measure_candidates() gave");
            return self.notify_runner_results(candidates, results_of(results, candidates.size()));
          },
          "measure_candidates"_a, "results"_a,
          "Say what measurements gave.\n\nArgs:\n    measure_candidates: what was measured.\n"
          "    results: one for each, with `run_secs` and `error_msg`.",
          nb::sig("def notify_runner_results(self, measure_candidates: Sequence[MeasureCandidate], "
                  "results: Sequence[Any]) -> None"))
      .def(
          "post_tuning",
          [](SearchStrategy& self) {
            require_native(self, "post_tuning");
            return self.post_tuning();
          },
          "End the search.")
      .def("clone", &clone_part<SearchStrategy>,
           "A strategy like this one, for another context. A subclass that does not define it is shared.",
           nb::sig("def clone(self) -> SearchStrategy"));
  return cls;
}

void bind_candidate(nb::module_& m) {
  // One that Python made keeps the schedule that it gave out: handles belong to that one.
  nb::class_<MeasureCandidate>(m, "MeasureCandidate", "A point of a space: it can be built and measured.",
                               nb::dynamic_attr())
      .def(
          "__init__",
          [](MeasureCandidate* self, const SchedulePtr& sch, const nb::object& args_info) {
            std::vector<ArgInfo> infos;
            if (!args_info.is_none()) {
              nb::object tensors_in = nb::module_::import_("tilewright.meta_schedule.arg_info").attr("tensors_in");
              for (nb::handle tensor : tensors_in(args_info)) {
                infos.push_back(
                    {nb::cast<DataType>(tensor.attr("dtype")), nb::cast<std::vector<int64_t>>(tensor.attr("shape"))});
              }
            }
            new (self) MeasureCandidate{taken(sch), std::move(infos)};
          },
          "sch"_a, "args_info"_a = nb::none(),
          "Make one.\n\nArgs:\n    sch: the schedule.\n    args_info: what the kernel is called with.",
          nb::sig("def __init__(self, sch: Schedule, args_info: Sequence[Any] | None = None) -> None"))
      .def_prop_ro(
          "sch",
          [](nb::handle self) {
            constexpr const char* kGiven = "_sch";
            if (nb::hasattr(self, kGiven)) return nb::object(self.attr(kGiven));
            const auto& candidate = nb::cast<const MeasureCandidate&>(self);
            nb::object schedule =
                nb::cast(python::to_python(candidate.schedule, candidate.schedule.rewound(0).module()));
            self.attr(kGiven) = schedule;
            return schedule;
          },
          "The schedule, the same object each time.", nb::sig("def sch(self) -> Schedule"))
      .def_prop_ro(
          "args_info",
          [](const MeasureCandidate& self) {
            nb::object info = nb::module_::import_("tilewright.meta_schedule.arg_info").attr("TensorInfo");
            nb::list result;
            for (const ArgInfo& arg : self.args_info) result.append(info(arg.dtype, arg.shape));
            return result;
          },
          "What the kernel is called with.", nb::sig("def args_info(self) -> list[Any]"));
}

constexpr const char* kRefusalsDoc = "How many candidates of this search were dropped, by reason.";
constexpr const char* kFirstRefusalsDoc = "What was said of the first candidate that was dropped, by reason.";

template <class Strategy>
void bind_refusals(nb::class_<Strategy, SearchStrategy>& cls) {
  bind_reasons(cls, [](const Strategy& self) { return self.refusals().reasons(); }, kRefusalsDoc, kFirstRefusalsDoc);
}

std::shared_ptr<SearchStrategy> create_strategy(const std::string& kind, nb::kwargs options) {
  nb::module_ core = nb::module_::import_("tilewright._core");
  const bool drafts = kind == "draft-and-verify", descends = kind == "descent";
  const char* name = kind == "evolutionary"                   ? "EvolutionarySearch"
                     : kind == "replay-trace"                 ? "ReplayTrace"
                     : kind == "replay-func"                  ? "ReplayFunc"
                     : kind == "guided" || drafts || descends ? "GuidedSearch"
                                                              : nullptr;
  if (!name) {
    fail(argument_error("search/strategy", "there is no strategy '" + kind + "'",
                        "known: guided, draft-and-verify, descent, evolutionary, replay-trace, replay-func"));
  }
  if (drafts && !options.contains("descent_share")) options["descent_share"] = 0.0;
  if (descends && !options.contains("descent_share")) options["descent_share"] = 1.0;
  if (descends && !options.contains("ends_with_descent")) options["ends_with_descent"] = true;
  return nb::cast<std::shared_ptr<SearchStrategy>>(core.attr(name)(**options));
}

void bind_bounds(nb::module_& m) {
  m.def(
      "bounds_of_tiles",
      [](const PySchedule& space, const Target& target, const PySchedule& sampled) {
        const ThreadBounds bounds(space.schedule, target);
        return ThreadBounds::name_of(bounds.excess(sampled.schedule.trace().without_postproc().decisions()));
      },
      nb::arg("space"), nb::arg("target"), nb::arg("sampled"),
      "Return the bound of a design space that the decisions of a schedule break, \"\" if they break none.");
}

void bind_guided(nb::module_& m) {
  auto cls = part<GuidedSearch>(
      m,
      "Many points are drafted by an estimate, the learned model ranks them, few are measured; a share of each batch "
      "changes single decisions of the best.",
      nb::kw_only(),
      "Make one.\n\nArgs:\n    drafts: points sampled for a batch; an eighth of it where a function has to be run.\n"
      "    reservoir: points that wait at most.\n    ranked: of them that the learned model sees.\n"
      "    exploration: trials before anything depends on results.\n"
      "    descent_share: share of a batch that changes single decisions of the best, afterwards.\n"
      "    random_share: share of the others that are sampled at random.\n"
      "    neighbors: changes of one point that are looked at, at most.\n"
      "    ends_with_descent: whether the search is over when no single change helps any more.\n"
      "    prior: a cost model that needs no measurements; the analytical one by default.");
  bind_reasons(
      cls, [](const GuidedSearch& self) { return self.sample_counts().refused; }, kRefusalsDoc, kFirstRefusalsDoc);
  cls.def_prop_ro(
      "attempts", [](const GuidedSearch& self) { return self.sample_counts().tries; }, "How many points were sampled.");
}

void bind_evolution(nb::module_& m) {
  auto cls = part<EvolutionarySearch>(
      m, "Candidates that the cost model likes have children; the best are measured.", nb::kw_only(),
      "Make one.\n\nArgs:\n    population_size: places of a generation.\n"
      "    init_measured_ratio: share of them that the best measured candidates take at first.\n"
      "    init_min_unmeasured: points at random that there have to be.\n"
      "    max_fail_count: batches of points at random that may all be refused.\n"
      "    genetic_num_iters: generations.\n"
      "    genetic_mutate_prob: probability that a child differs from its parent.\n"
      "    genetic_max_fail_count: children that may be refused before the parent stays.\n"
      "    eps_greedy: share of the measured that are points at random.");
  bind_refusals(cls);
  cls.def(
      "sample_init_population",
      [](EvolutionarySearch& self, size_t num) {
        return schedules_to_python(gil_released([&] { return self.sample_init_population(num); }));
      },
      "num"_a, "Points at random, postprocessed, in batches of so many: a step of a round, for tests.",
      nb::sig("def sample_init_population(self, num: int) -> list[Schedule]"));
  cls.def(
      "evolve_with_cost_model",
      [](EvolutionarySearch& self, const nb::object& population, size_t num) {
        auto given = unwrap(schedules_of(population, "population has", "it is a list of schedules"));
        return schedules_to_python(gil_released([&] { return self.evolve_with_cost_model(std::move(given), num); }));
      },
      "population"_a, "num"_a,
      "The best new candidates after all generations: a step of a round, for tests.\n\nArgs:\n"
      "    population: schedules to begin with.\n    num: how many at most.",
      nb::sig("def evolve_with_cost_model(self, population: Sequence[Schedule], num: int) -> list[Schedule]"));
}

}  // namespace

void bind_search_strategy(nb::module_& m) {
  bind_candidate(m);
  nb::class_<SearchStrategy, PythonSearchStrategy> base = bind_strategy_base(m);
  nb::class_<ReplayFunc, SearchStrategy> replay_func(m, "ReplayFunc",
                                                     "Points at random, the space generator run anew for each.");
  replay_func.def(nb::init<>());
  bind_refusals(replay_func);
  nb::class_<ReplayTrace, SearchStrategy> replay_trace(m, "ReplayTrace",
                                                       "Points at random: the trace of a design space, sampled anew.");
  replay_trace.def(nb::init<int64_t>(), "max_fail_count"_a = 100,
                   "Make one.\n\nArgs:\n"
                   "    max_fail_count: refused points in a row that leave a place in the batch empty.");
  bind_refusals(replay_trace);
  bind_evolution(m);
  bind_bounds(m);
  bind_guided(m);
  base.def_static("create", &create_strategy, "kind"_a, "options"_a,
                  "The strategy of a name.\n\nArgs:\n"
                  "    kind: \"guided\", \"draft-and-verify\", \"descent\", \"evolutionary\", \"replay-trace\" or "
                  "\"replay-func\".\n    options: as its class takes.",
                  nb::sig("def create(kind: str, **options: Any) -> SearchStrategy"));
}

}  // namespace tilewright::python
