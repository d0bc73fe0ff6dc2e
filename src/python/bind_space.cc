// Spaces: where the schedules of a search come from.

#include <fmt/format.h>

#include "python/part.h"
#include "search/mutators/defaults.h"
#include "search/postprocs/defaults.h"
#include "search/rules/defaults.h"
#include "search/space/function_space.h"
#include "search/space/post_order_apply.h"
#include "search/space/schedule_fn.h"
#include "search/space/space_generator_union.h"

namespace tilewright::python {
namespace {

using search::Schedules;
using search::SpaceGenerator;
using search::TuneContext;

constexpr char kSpaceException[] = "space/exception";

struct PythonSpaceGenerator final : PythonPart<SpaceGenerator, kSpaceException> {
  Status initialize(const TuneContext& context) override {
    const bool is_overridden = [&] {
      nb::gil_scoped_acquire gil;
      return overrides(self(), "initialize");
    }();
    return is_overridden ? PythonPart::initialize(context) : SpaceGenerator::initialize(context);
  }
  Result<Schedules> generate_design_space(const Ref<Module>& module) override {
    return call("generate_design_space", [&](const nb::object& method) {
      return schedules_of(method(module), "generate_design_space() of a '" + class_of_self() + "' gave",
                          "it gives a list of schedules, such as [tw.Schedule(module)]");
    });
  }
};

nb::list generate_spaces(SpaceGenerator& self, const Ref<Module>& module) {
  require_native(self, "generate_design_space");
  return schedules_to_python(gil_released([&] { return self.generate_design_space(module); }), module);
}

/// A list of components that Python gave a space.
template <class Parts>
Parts cast_part(nb::handle given, const char* name, const char* what) {
  Parts parts;
  bool has_none = false;
  if (nb::isinstance<nb::sequence>(given)) {
    for (nb::handle part : nb::borrow<nb::sequence>(given)) {
      nb::handle component = nb::isinstance<nb::tuple>(part) && nb::len(part) > 0 ? nb::handle(part[0]) : part;
      has_none |= component.is_none();
      require_begun(component);
    }
    if (!has_none && nb::try_cast(given, parts)) return parts;
  }
  std::string hint = "subclass the classes of tilewright.meta_schedule, and give instances of them";
  if constexpr (std::is_same_v<Parts, search::Mutators>) {
    hint += ", each with how often it is taken: [(MyMutator(), 1.0)] or {MyMutator(): 1.0}; [] for none";
  }
  fail(argument_error("search/parts", std::string(name) + " is not a list of " + what + ": " + nb::repr(given).c_str(),
                      std::move(hint)));
}

/// A list of parts, where None is an empty list.
template <class Parts>
std::optional<Parts> cast_parts(nb::handle given, const char* name, const char* what) {
  if (given.is_none()) return std::nullopt;
  return cast_part<Parts>(given, name, what);
}

/// Shares of all mutations; they need not add up to 1.
search::Mutators checked(search::Mutators mutators) {
  for (const auto& [mutator, probability] : mutators) {
    if (probability >= 0 && probability <= 1) continue;
    fail(argument_error(
        "search/probability",
        "the probability of a " + class_name(nb::cast(mutator)) + " is " + fmt::format("{}", probability),
        "it is a number from 0 to 1"));
  }
  return mutators;
}

template <auto kParts>
auto get(const SpaceGenerator& space) {
  return space.*kParts;
}

void set_schedule_rules(SpaceGenerator& space, nb::handle given) {
  space.schedule_rules = cast_parts<search::ScheduleRules>(given, "schedule_rules", "schedule rules");
}

/// Sets the mutators from pairs or a dict. `name`: name of the argument in error messages.
void set_mutators(SpaceGenerator& space, nb::handle given, const char* name) {
  if (given.is_none()) {
    space.mutators.reset();
  } else {
    nb::object pairs = nb::isinstance<nb::dict>(given) ? nb::steal(PyDict_Items(given.ptr())) : nb::borrow(given);
    space.mutators = checked(cast_part<search::Mutators>(pairs, name, "mutators with their probabilities"));
  }
}

void set_mutator_probs(SpaceGenerator& space, nb::handle given) { set_mutators(space, given, "mutator_probs"); }

nb::object mutator_probs(const SpaceGenerator& space) {
  if (!space.mutators) return nb::none();
  nb::dict probs;
  for (const auto& [mutator, probability] : *space.mutators) probs[nb::cast(mutator)] = probability;
  return probs;
}

/// Wraps a Python function of a schedule. If it returns nothing, the result is the schedule that it changed.
search::ScheduleFn::Function schedule_function(nb::callable function) {
  auto held = std::make_shared<HeldCallable>(std::move(function));
  return [held](schedule::Schedule schedule) {
    return in_python("space/exception", [&]() -> Result<Schedules> {
      SchedulePtr object = to_python(std::move(schedule));
      object->original = object->schedule.module();
      nb::object answer = held->callable(object);
      if (answer.is_none()) return Schedules{object->schedule};
      const std::string name =
          nb::cast<std::string>(nb::str(nb::getattr(held->callable, "__name__", nb::str("space"))));
      return schedules_of(answer, "the space '" + name + "' returned",
                          "change the schedule in place and return None, or return a schedule or a list of them");
    });
  };
}

/// Wraps a Python function that is rerun with these decisions, up to the step where it fails.
search::FunctionSpace::Function rerun_function(nb::callable function, bool with_target) {
  using Point = search::FunctionSpace::Point;
  auto held = std::make_shared<HeldCallable>(std::move(function));
  return [held, with_target](schedule::Schedule schedule, const search::FunctionSpace::Wanted& wanted) {
    return in_python("space/exception", [&]() -> Result<Point> {
      SchedulePtr object = to_python(std::move(schedule));
      object->original = object->schedule.module();
      object->schedule.take_decisions(wanted.decisions);
      try {
        with_target ? held->callable(object, wanted.first, wanted.target) : held->callable(object, wanted.first);
      } catch (nb::python_error& error) {
        if (error.matches(PyExc_KeyboardInterrupt)) throw;
        Diagnostic why = diagnostic_of(error, "space/exception");
        if (why.blame == Blame::kResource && why.code != "space/deadline") return why;
        object->schedule.take_decisions({});
        return Point{object->schedule, std::move(why)};
      }
      object->schedule.take_decisions({});  // decisions of this run only, not of later steps
      return Point{object->schedule};
    });
  };
}

/// Sets rules, postprocessors and mutators from the arguments of a space's constructor. Each is a list, the name of a
/// kind of target, or "from-target" (or None).
void set_parts(SpaceGenerator& space, nb::handle rules, nb::handle postprocs, nb::handle mutators) {
  const auto set_part = [](auto& parts, nb::handle given, const auto& defaults, const auto& read) {
    if (given.is_none()) return;
    if (!nb::isinstance<nb::str>(given)) return read(given);
    const auto kind = nb::cast<std::string>(given);
    if (kind != "from-target") parts = unwrap(defaults(kind));
  };
  set_part(space.schedule_rules, rules, search::default_schedule_rules, [&](nb::handle given) {
    space.schedule_rules = cast_part<search::ScheduleRules>(given, "sch_rules", "schedule rules");
  });
  set_part(space.postprocs, postprocs, search::default_postprocs, [&](nb::handle given) {
    space.postprocs = cast_part<search::Postprocs>(given, "postprocs", "postprocessors");
  });
  set_part(space.mutators, mutators, search::default_mutators,
           [&](nb::handle given) { set_mutator_probs(space, given); });
}

/// Returns the argument if it is a generator, or else the space of a function, such as one of tw.space.
std::shared_ptr<SpaceGenerator> member_of_union(nb::handle given) {
  std::shared_ptr<SpaceGenerator> generator;
  if (!nb::isinstance<nb::str>(given) && nb::try_cast(given, generator) && generator) return generator;
  if (PyCallable_Check(given.ptr()) == 1) {
    return std::make_shared<search::ScheduleFn>(schedule_function(nb::borrow<nb::callable>(given)));
  }
  fail(argument_error("search/parts",
                      "space_generators holds what is not a space: " + std::string(nb::repr(given).c_str()),
                      "give objects of SpaceGenerator, or functions of a schedule"));
}

nb::object create_generator(const nb::object& kind, const nb::args& args, const nb::kwargs& options) {
  nb::module_ core = nb::module_::import_("tilewright._core");
  if (nb::isinstance<SpaceGenerator>(kind)) return kind;
  if (!nb::isinstance<nb::str>(kind)) return core.attr("ScheduleFn")(kind, *args, **options);
  const std::string name = nb::cast<std::string>(kind);
  if (name == "post-order-apply") return core.attr("PostOrderApply")(*args, **options);
  if (name == "union") return core.attr("SpaceGeneratorUnion")(*args, **options);
  fail(argument_error("search/space", "there is no space '" + name + "'",
                      "known: post-order-apply, union; or pass a function of a schedule"));
}

search::PostOrderApply::BlockFilter block_filter(const nb::object& function) {
  if (function.is_none()) return {};
  auto held = std::make_shared<HeldCallable>(nb::cast<nb::callable>(function));
  return [held](const Ref<Block>& block) {
    return in_python("space/exception", [&]() -> Result<bool> { return truth_of(held->callable(block)); });
  };
}

void bind_generator(nb::module_& m) {
  nb::class_<SpaceGenerator, PythonSpaceGenerator> cls(
      m, "SpaceGenerator", "Where the schedules of a search come from. Subclasses define generate_design_space().");
  bind_reasons(cls, &SpaceGenerator::refusals, "How often a rule failed on a block, which stayed as it was, by reason.",
               "What was said of the first block that a rule failed on, by reason.");
  cls.def(nb::init<>())
      .def_prop_rw("schedule_rules", &get<&SpaceGenerator::schedule_rules>, &set_schedule_rules, nb::arg().none(),
                   nb::for_getter(nb::sig("def schedule_rules(self) -> list[ScheduleRule] | None")),
                   nb::for_setter(nb::sig("def schedule_rules(self, value: Sequence[ScheduleRule] | None, /) -> None")),
                   "What is applied to blocks; None until initialize() fills in those of the target.")
      .def_prop_rw("sch_rules", &get<&SpaceGenerator::schedule_rules>, &set_schedule_rules, nb::arg().none(),
                   nb::for_getter(nb::sig("def sch_rules(self) -> list[ScheduleRule] | None")),
                   nb::for_setter(nb::sig("def sch_rules(self, value: Sequence[ScheduleRule] | None, /) -> None")),
                   "The same as schedule_rules.")
      .def_prop_rw("mutator_probs", &mutator_probs, &set_mutator_probs, nb::arg().none(),
                   nb::for_getter(nb::sig("def mutator_probs(self) -> dict[Mutator, float] | None")),
                   nb::for_setter(nb::sig("def mutator_probs(self, value: Mapping[Mutator, float] | None, /) -> None")),
                   "The mutators and their probabilities.")
      .def_prop_rw(
          "postprocs", &get<&SpaceGenerator::postprocs>,
          [](SpaceGenerator& self, nb::handle given) {
            self.postprocs = cast_parts<search::Postprocs>(given, "postprocs", "postprocessors");
          },
          nb::arg().none(), nb::for_getter(nb::sig("def postprocs(self) -> list[Postproc] | None")),
          nb::for_setter(nb::sig("def postprocs(self, value: Sequence[Postproc] | None, /) -> None")),
          "What is done to candidates before they are built; None until initialize() fills in those of the target.")
      .def_prop_rw(
          "mutators", &get<&SpaceGenerator::mutators>,
          [](SpaceGenerator& self, nb::handle given) { set_mutators(self, given, "mutators"); }, nb::arg().none(),
          nb::for_getter(nb::sig("def mutators(self) -> list[tuple[Mutator, float]] | None")),
          nb::for_setter(nb::sig("def mutators(self, value: Sequence[tuple[Mutator, float]] | Mapping[Mutator, float] "
                                 "| None, /) -> None")),
          "What varies candidates, each with its probability; None until initialize() fills in those of the target.")
      .def(
          "initialize",
          [](SpaceGenerator& self, const TuneContext& context) {
            // Call the base method directly: a subclass in Python calls it by super().
            return is_of_python(self) ? self.SpaceGenerator::initialize(context) : self.initialize(context);
          },
          "context"_a, "Fill in what is not given, and initialize rules, postprocessors and mutators.")
      .def("generate_design_space", &generate_spaces, "module"_a,
           "The schedules of a program, one for each way to say it.",
           nb::sig("def generate_design_space(self, module: Module) -> list[Schedule]"))
      .def("clone", &clone_part<SpaceGenerator>,
           "A generator like this one, for another context. A subclass that does not define it is shared.",
           nb::sig("def clone(self) -> SpaceGenerator"))
      .def_static(
          "create", &create_generator, "kind"_a = "post-order-apply", "args"_a, "options"_a,
          "The generator of a name, or of a function.\n\nArgs:\n"
          "    kind: \"post-order-apply\", \"union\", or a function of a schedule. One that is there is given back.\n"
          "    args: as its class takes.\n    options: as its class takes.",
          nb::sig("def create(kind: Callable[[Schedule], Any] | str = 'post-order-apply', *args: Any, "
                  "**options: Any) -> SpaceGenerator"));
}

void bind_spaces_of_functions(nb::module_& m) {
  nb::class_<search::ScheduleFn, SpaceGenerator>(m, "ScheduleFn", "The space that a function makes of a schedule.")
      .def(
          "__init__",
          [](search::ScheduleFn* self, nb::callable function, const nb::object& rules, const nb::object& postprocs,
             const nb::object& mutators) {
            new (self) search::ScheduleFn(schedule_function(std::move(function)));
            set_parts(*self, rules, postprocs, mutators);
          },
          "function"_a, "sch_rules"_a.none() = "from-target", "postprocs"_a.none() = "from-target",
          "mutator_probs"_a.none() = "from-target",
          "The space of a function.\n\nArgs:\n"
          "    function: changes the schedule that it is given, or returns one, or a list of them.\n"
          "    sch_rules: see PostOrderApply; a function needs none.\n"
          "    postprocs: see PostOrderApply.\n"
          "    mutator_probs: see PostOrderApply.",
          nb::sig("def __init__(self, function: Callable[[Schedule], Any], "
                  "sch_rules: Sequence[ScheduleRule] | str | None = 'from-target', "
                  "postprocs: Sequence[Postproc] | str | None = 'from-target', "
                  "mutator_probs: Mapping[Mutator, float] | str | None = 'from-target') -> None"));
  nb::class_<search::FunctionSpace, SpaceGenerator>(
      m, "FunctionSpace", "The space of a function that reads sampled values: it is run anew for each point.")
      .def(
          "__init__",
          [](search::FunctionSpace* self, nb::callable function, bool with_target) {
            new (self) search::FunctionSpace(rerun_function(std::move(function), with_target));
          },
          "function"_a, "with_target"_a = false,
          "The space of a function.\n\nArgs:\n"
          "    function: changes the schedule that it is given; its second argument says whether the point that is to "
          "be tried first is wanted.\n"
          "    with_target: whether it has a third argument, the target of the context.");
}

void bind_spaces_of_rules(nb::module_& m) {
  nb::class_<search::PostOrderApply, SpaceGenerator>(
      m, "PostOrderApply", "The space that rules make of the blocks of a program, from the last to the first.")
      .def(
          "__init__",
          [](search::PostOrderApply* self, const nb::object& filter, const nb::object& rules,
             const nb::object& postprocs, const nb::object& mutators, const nb::object& published) {
            if (!filter.is_none() && !published.is_none()) {
              fail(argument_error("search/parts", "block_filter and f_block_filter are names of one argument",
                                  "give one of them"));
            }
            new (self) search::PostOrderApply(block_filter(filter.is_none() ? published : filter));
            set_parts(*self, rules, postprocs, mutators);
          },
          "block_filter"_a = nb::none(), "sch_rules"_a.none() = "from-target", "postprocs"_a.none() = "from-target",
          "mutator_probs"_a.none() = "from-target", nb::kw_only(), "f_block_filter"_a = nb::none(),
          "The space of schedule_rules.\n\nArgs:\n"
          "    block_filter: says of a Block whether rules are to see it.\n"
          "    sch_rules: what is applied to blocks, in this order: a list, the name of a kind of target, or "
          "\"from-target\": what the target takes by default.\n"
          "    postprocs: what is done to candidates before they are built; a list or a name, as sch_rules.\n"
          "    mutator_probs: what varies candidates, each with its probability; or as above.\n"
          "    f_block_filter: block_filter, by its name in TVM.",
          nb::sig("def __init__(self, block_filter: Callable[[Block], bool] | None = None, "
                  "sch_rules: Sequence[ScheduleRule] | str | None = 'from-target', "
                  "postprocs: Sequence[Postproc] | str | None = 'from-target', "
                  "mutator_probs: Mapping[Mutator, float] | str | None = 'from-target', *, "
                  "f_block_filter: Callable[[Block], bool] | None = None) -> None"));
  nb::class_<search::SpaceGeneratorUnion, SpaceGenerator>(m, "SpaceGeneratorUnion", "Several spaces, as one.")
      .def(
          "__init__",
          [](search::SpaceGeneratorUnion* self, const nb::sequence& spaces, const nb::object& rules,
             const nb::object& postprocs, const nb::object& mutators) {
            std::vector<std::shared_ptr<SpaceGenerator>> members;
            for (nb::handle each : spaces) members.push_back(member_of_union(each));
            new (self) search::SpaceGeneratorUnion(std::move(members));
            set_parts(*self, rules, postprocs, mutators);
          },
          "space_generators"_a = nb::tuple(), "sch_rules"_a.none() = "from-target",
          "postprocs"_a.none() = "from-target", "mutator_probs"_a.none() = "from-target",
          "The space of several.\n\nArgs:\n"
          "    space_generators: spaces, or functions of a schedule, as ScheduleFn takes them.\n"
          "    sch_rules: see PostOrderApply; each space has its own.\n"
          "    postprocs: see PostOrderApply; for the union.\n"
          "    mutator_probs: see PostOrderApply; for the union.",
          nb::sig("def __init__(self, space_generators: Sequence[SpaceGenerator | Callable[[Schedule], Any]] = (), "
                  "sch_rules: Sequence[ScheduleRule] | str | None = 'from-target', "
                  "postprocs: Sequence[Postproc] | str | None = 'from-target', "
                  "mutator_probs: Mapping[Mutator, float] | str | None = 'from-target') -> None"));
}

}  // namespace

void bind_space(nb::module_& m) {
  bind_generator(m);
  bind_spaces_of_functions(m);
  bind_spaces_of_rules(m);
}

void bind_search_components(nb::module_& m) {
  listen_to_warnings();
  bind_rules(m);
  bind_postprocs(m);
  bind_mutators(m);
  bind_space(m);
  bind_search_strategy(m);
  bind_trace_apply(m);
  bind_tune_context(m);
  bind_cost_models(m);
  bind_auto_tensorize(m);
}

}  // namespace tilewright::python
