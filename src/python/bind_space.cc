// Spaces: where the schedules of a search come from.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/search_components.h"
#include "search/space/function_space.h"
#include "search/space/post_order_apply.h"
#include "search/space/schedule_fn.h"
#include "search/space/space_generator_union.h"

namespace tilewright::python {
namespace {

using search::SpaceGenerator;
using search::TuneContext;

struct PythonSpaceGenerator final : SpaceGenerator {
  NB_TRAMPOLINE(SpaceGenerator);

  Status initialize(const TuneContext& context) override {
    if (!overrides_initialize()) return SpaceGenerator::initialize(context);
    return in_python("space/exception", [&]() -> Status {
      overridden<SpaceGenerator>(this, "initialize")(context_to_python(context));
      return Ok{};
    });
  }
  Result<std::vector<schedule::Schedule>> generate_design_space(const Ref<Module>& module) override {
    return in_python("space/exception",
                     [&] { return schedules_of(overridden<SpaceGenerator>(this, "generate_design_space")(module)); });
  }
  std::shared_ptr<SpaceGenerator> clone() const override {
    nb::gil_scoped_acquire gil;
    nb::object self = nb::find(static_cast<const SpaceGenerator*>(this));
    if (overrides<SpaceGenerator>(this, "clone")) self = self.attr("clone")();
    return nb::cast<std::shared_ptr<SpaceGenerator>>(self);
  }

 private:
  bool overrides_initialize() const {
    nb::gil_scoped_acquire gil;
    return overrides<SpaceGenerator>(this, "initialize");
  }
};

nb::list generate(SpaceGenerator& self, const Ref<Module>& module) {
  if (auto* python = dynamic_cast<PythonSpaceGenerator*>(&self)) {
    not_defined<SpaceGenerator>(python, "generate_design_space");
  }
  auto made = [&] {
    nb::gil_scoped_release release;
    return self.generate_design_space(module);
  }();
  nb::list result;
  for (schedule::Schedule& item : unwrap(std::move(made))) result.append(to_python(std::move(item), module));
  return result;
}

/// What a function makes of a schedule; what it did to it where it returns nothing.
search::ScheduleFn::Function schedule_function(nb::callable function) {
  auto held = std::make_shared<HeldCallable>(std::move(function));
  return [held](schedule::Schedule schedule) {
    return in_python("space/exception", [&]() -> Result<std::vector<schedule::Schedule>> {
      SchedulePtr object = to_python(std::move(schedule));
      object->original = object->schedule.module();
      nb::object answer = held->callable(object);
      if (answer.is_none()) return std::vector<schedule::Schedule>{object->schedule};
      return schedules_of(answer);
    });
  };
}

/// What a function did to a schedule with these decisions, as far as it came.
search::FunctionSpace::Function rerun_function(nb::callable function) {
  using Point = search::FunctionSpace::Point;
  auto held = std::make_shared<HeldCallable>(std::move(function));
  return [held](schedule::Schedule schedule, const std::vector<schedule::Value>& decisions, bool first) {
    return in_python("space/exception", [&]() -> Result<Point> {
      SchedulePtr object = to_python(std::move(schedule));
      object->original = object->schedule.module();
      object->schedule.take_decisions(decisions);
      try {
        held->callable(object, first);
      } catch (nb::python_error& error) {
        if (error.matches(PyExc_KeyboardInterrupt)) throw;
        Diagnostic why = diagnostic_of(error, "space/exception");
        if (why.blame == Blame::kResource && why.code != "space/deadline") return why;
        object->schedule.take_decisions({});
        return Point{object->schedule, std::move(why)};
      }
      object->schedule.take_decisions({});  // of this run alone, not of steps that others add
      return Point{object->schedule};
    });
  };
}

search::PostOrderApply::BlockFilter block_filter(const nb::object& function) {
  if (function.is_none()) return {};
  auto held = std::make_shared<HeldCallable>(nb::cast<nb::callable>(function));
  return [held](const Ref<Block>& block) {
    return in_python("space/exception",
                     [&]() -> Result<bool> { return PyObject_IsTrue(held->callable(block).ptr()) == 1; });
  };
}

}  // namespace

void bind_space(nb::module_& m) {
  nb::class_<SpaceGenerator, PythonSpaceGenerator>(
      m, "SpaceGenerator", "Where the schedules of a search come from. Subclasses define generate_design_space().")
      .def(nb::init<>())
      .def_rw("schedule_rules", &SpaceGenerator::schedule_rules, nb::arg().none(),
              "What is applied to blocks; None until initialize() fills in those of the target.")
      .def_rw("postprocs", &SpaceGenerator::postprocs, nb::arg().none(),
              nb::for_getter(nb::sig("def postprocs(self) -> list[Postproc] | None")),
              nb::for_setter(nb::sig("def postprocs(self, value: Sequence[Postproc] | None, /) -> None")),
              "What is done to candidates before they are built; None until initialize() fills in those of the target.")
      .def_rw(
          "mutators", &SpaceGenerator::mutators, nb::arg().none(),
          "What varies candidates, each with its probability; None until initialize() fills in those of the target.")
      .def(
          "initialize",
          [](SpaceGenerator& self, const TuneContext& context) {
            // As a method of the base class: a subclass in Python calls it by super().
            Status status = dynamic_cast<PythonSpaceGenerator*>(&self) ? self.SpaceGenerator::initialize(context)
                                                                       : self.initialize(context);
            unwrap_status(std::move(status));
          },
          nb::arg("context"), "Fill in what is not given, and initialize rules, postprocessors and mutators.")
      .def("generate_design_space", &generate, nb::arg("module"),
           "The schedules of a program, one for each way to say it.",
           nb::sig("def generate_design_space(self, module: Module) -> list[Schedule]"))
      .def(
          "clone",
          [](const nb::object& self) {
            const auto& generator = nb::cast<const SpaceGenerator&>(self);
            return dynamic_cast<const PythonSpaceGenerator*>(&generator) ? self : nb::cast(generator.clone());
          },
          "A generator like this one, for another context. A subclass that does not define it is shared.",
          nb::sig("def clone(self) -> SpaceGenerator"));
  nb::class_<search::ScheduleFn, SpaceGenerator>(m, "ScheduleFn", "The space that a function makes of a schedule.")
      .def(
          "__init__",
          [](search::ScheduleFn* self, nb::callable function) {
            new (self) search::ScheduleFn(schedule_function(std::move(function)));
          },
          nb::arg("function"),
          "The space of a function.\n\nArgs:\n"
          "    function: changes the schedule that it is given, or returns one, or a list of them.");
  nb::class_<search::FunctionSpace, SpaceGenerator>(
      m, "FunctionSpace", "The space of a function that reads what it draws: it is run anew for each point.")
      .def(
          "__init__",
          [](search::FunctionSpace* self, nb::callable function) {
            new (self) search::FunctionSpace(rerun_function(std::move(function)));
          },
          nb::arg("function"),
          "The space of a function.\n\nArgs:\n"
          "    function: changes the schedule that it is given; its second argument says whether the point that is to "
          "be tried first is wanted.");
  nb::class_<search::PostOrderApply, SpaceGenerator>(
      m, "PostOrderApply", "The space that rules make of the blocks of a program, from the last to the first.")
      .def(
          "__init__",
          [](search::PostOrderApply* self, const nb::object& filter) {
            new (self) search::PostOrderApply(block_filter(filter));
          },
          nb::arg("block_filter").none() = nb::none(),
          "The space of schedule_rules.\n\nArgs:\n"
          "    block_filter: says of a Block whether rules are to see it.",
          nb::sig("def __init__(self, block_filter: Callable[[Block], bool] | None = None) -> None"));
  nb::class_<search::SpaceGeneratorUnion, SpaceGenerator>(m, "SpaceGeneratorUnion", "Several spaces, as one.")
      .def(nb::init<std::vector<std::shared_ptr<SpaceGenerator>>>(), nb::arg("space_generators"));
}

void bind_search_components(nb::module_& m) {
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
