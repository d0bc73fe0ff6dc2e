// Rules, which turn a schedule into others, block by block.
#include <fmt/format.h>
#include <nanobind/stl/map.h>

#include "python/part.h"
#include "schedule/format_templates.h"
#include "search/rules/add_rfactor.h"
#include "search/rules/apply_custom_rule.h"
#include "search/rules/auto_bind.h"
#include "search/rules/auto_inline.h"
#include "search/rules/cross_thread_reduction.h"
#include "search/rules/defaults.h"
#include "search/rules/inline_constant_scalars.h"
#include "search/rules/multi_level_tiling_tensor_core.h"
#include "search/rules/multi_level_tiling_wide_vector.h"
#include "search/rules/multi_level_tiling_with_intrin.h"
#include "search/rules/parallelize_vectorize_unroll.h"
#include "search/rules/random_compute_location.h"
#include "support/ranges.h"

namespace tilewright::python {
namespace {

using search::ScheduleRule;
using search::Schedules;

/// A rule that has nothing to say returns the schedule; one that returns None has forgotten to return something.
Result<Schedules> made_by_rule(const std::string& rule, nb::handle answer) {
  constexpr const char* kHint = "return the schedule, or a list of them: [sch] where there is nothing to do";
  if (answer.is_none()) return argument_error("search/schedule", rule + " returned None", kHint);
  return schedules_of(answer, rule + " returned", kHint);
}

constexpr char kRuleException[] = "space/exception";

struct PythonScheduleRule final : PythonPart<ScheduleRule, kRuleException> {
  std::string name() const override {
    nb::gil_scoped_acquire gil;
    return class_of_self();
  }
  Result<Schedules> apply(schedule::Schedule schedule, schedule::BlockRV block) const override {
    return call("apply", [&](const nb::object& method) {
      SchedulePtr copy = to_python(std::move(schedule));
      return made_by_rule(class_of_self() + ".apply()", method(copy, PyBlock{copy, block}));
    });
  }
};

nb::list apply_rule(const ScheduleRule& rule, const SchedulePtr& schedule, const PyBlock& block) {
  require_native(rule, "apply");
  schedule::Schedule start = taken(schedule);
  schedule::BlockRV rv = own(*schedule, block, "apply");
  auto made = gil_released([&] { return rule.apply(std::move(start), rv); });
  if (!made.ok() && exception_behind(made.error()).is_valid()) fail(std::move(made.error()));
  nb::list result;
  for (schedule::Schedule& item : unwrap_in(*schedule, std::move(made)))
    result.append(to_python(std::move(item), *schedule));
  return result;
}

/// ReuseType("must", [4], "shared").
search::ReuseType reuse_of(nb::handle object) {
  for (const char* part : {"req", "levels", "scope"}) {
    if (nb::hasattr(object, part)) continue;
    fail(argument_error("multi_level_tiling/reuse",
                        fmt::format("a '{}' was given where a ReuseType was expected", class_name(object)),
                        "write ReuseType(\"must\", [4], \"shared\"), or None for no copy"));
  }
  search::ReuseType reuse;
  reuse.requirement = unwrap(search::ReuseType::parse(nb::cast<std::string>(object.attr("req"))));
  reuse.levels = nb::cast<std::vector<int64_t>>(object.attr("levels"));
  reuse.scope = nb::cast<std::string>(object.attr("scope"));
  return reuse;
}

/// Wraps a Python function of a schedule and a block that decides whether to tile the block.
search::MultiLevelTilingOptions::Filter tiling_filter(const nb::object& function) {
  auto held = std::make_shared<HeldCallable>(nb::cast<nb::callable>(function));
  return [held](const schedule::Schedule& schedule, schedule::BlockRV block) {
    return in_python("space/exception", [&]() -> Result<bool> {
      SchedulePtr copy = to_python(schedule);
      return truth_of(held->callable(copy, PyBlock{copy, block}));
    });
  };
}

/// Converts [{"init": name, "load_a": name, ...}].
using IntrinGroups = std::vector<std::map<std::string, std::string>>;
std::vector<search::TensorCoreIntrins> tensor_core_intrins(const IntrinGroups& groups) {
  std::vector<search::TensorCoreIntrins> result;
  for (const auto& group : groups) {
    for_each_field(result.emplace_back(), [&](std::string_view key, std::string& name) {
      auto* found = find_value(group, std::string(key));
      if (!found) {
        fail(argument_error("multi_level_tiling/intrin", "a group names no intrinsic for " + std::string(key),
                            "groups have init, load_a, load_b, compute and store"));
      }
      name = *found;
    });
  }
  return result;
}

}  // namespace

template <>
struct Option<search::ReuseType> : ObjectOption<search::ReuseType, reuse_of> {};
template <>
struct Option<search::MultiLevelTilingOptions::Filter>
    : ObjectOption<search::MultiLevelTilingOptions::Filter, tiling_filter> {};
template <>
struct Option<std::vector<search::TensorCoreIntrins>, true> {
  using type = IntrinGroups;
  static void from_python(type&& groups, std::vector<search::TensorCoreIntrins>& option) {
    option = tensor_core_intrins(groups);
  }
};

namespace {

void bind_simple_rules(nb::module_& m) {
  using namespace search;
  part<ApplyCustomRule>(m, "Rules that blocks name in an annotation \"schedule_rule\", see register_custom_rule().");
  part<InlineConstantScalars>(m, "Blocks that compute one number from nothing go into those that read it.");
  part<AutoInline>(m, "Blocks without work of their own go into those that read them, or into their producer.",
                   "The conditions hold for functions that reduce something; in others every block may go.\n\nArgs:\n"
                   "    into_producer: a block may go into the one complete block that computes what it reads.\n"
                   "    into_consumer: a block may go into those that read it.\n"
                   "    inline_const_tensor: a block that reads nothing does, whatever else is said here.\n"
                   "    disallow_if_then_else: not if it stores, or computes, on a condition.\n"
                   "    require_injective: not if an index of what it writes occurs twice in what it reads.\n"
                   "    require_ordered: nor if they occur in another order.\n"
                   "    disallow_op: nor if it calls one of these intrinsics, such as \"tir.exp\".");
  part<AddRFactor>(m, "Reductions with few spatial iterations are computed in parts, by rfactor.",
                   "Gives a schedule for either part of the split reduction, and the one of before.\n\nArgs:\n"
                   "    max_jobs_per_core: that many spatial iterations for each core are enough.\n"
                   "    max_innermost_factor: of the split; None for no limit.");
  part<CrossThreadReduction>(m, "Reductions with few spatial iterations are computed by the threads of a team.",
                             "Gives a schedule with threads, and the one of before.\n\nArgs:\n"
                             "    thread_extents: candidates for the number of threads.");
  part<ParallelizeVectorizeUnroll>(
      m, "Says how far a postprocessor may parallelize, vectorize and unroll.",
      "By annotations of the root block.\n\nArgs:\n"
      "    max_jobs_per_core: iterations of parallel loops, for each core; -1 for no parallel loops.\n"
      "    max_vectorize_extent: iterations of vector loops; -1 for none.\n"
      "    unroll_max_steps: candidates for how much may be unrolled; None for nothing.\n"
      "    unroll_explicit: in the program, rather than by the back end.");
  part<RandomComputeLocation>(m, "Blocks that nobody tiled are computed at a sampled location.");
  part<AutoBind>(m, "Gives the iterations of blocks that nobody tiled to the blocks and threads of a GPU.",
                 "Fuses the outer spatial loops.\n\nArgs:\n"
                 "    max_threadblocks: how many blocks there may be.\n"
                 "    thread_extents: candidates for the threads of a block; None for 32, 64, ... 1024.\n"
                 "    max_threads_per_block: how many of them there may be; -1 for what the target says.");
}

constexpr const char* kTilingArgs =
    "    structure: a word of S (spatial loops) and R (reduction loops), outermost tiles first.\n"
    "    tile_binds: thread axes for the first tiles.\n"
    "    max_innermost_factor: of the sampled sizes; None for no limit.\n"
    "    vector_load_lens: candidates for how many elements a thread copies at a time.\n"
    "    reuse_read: copies of what is read.\n"
    "    reuse_write: a copy of what is written.\n";

void bind_tensor_core_tiling(nb::module_& m) {
  using namespace search;
  static const std::string kTensorCoreDoc =
      std::string(
          "Blocks that do not fit stay as they are; there is a schedule for each group that fits. Groups of wmma need\n"
          "reuse_write; those of m16n8k8 store their results from registers.\n\nArgs:\n"
          "    intrin_groups: dicts of the names of intrinsics: init, load_a, load_b, compute, store.\n") +
      kTilingArgs + "    use_software_pipeline: load for the next step of the reduction while this one is computed.";
  part<MultiLevelTilingTensorCore>(m, "Tiles what tensor cores compute, with fragments that warps load and store.",
                                   kTensorCoreDoc.c_str());
}

void bind_tilings(nb::module_& m) {
  using namespace search;
  static const std::string kTilingDoc =
      std::string("Gives a schedule for each way to place copies.\n\nArgs:\n") + kTilingArgs +
      "    filter_fn: of a schedule and a block; true: tile it also where it does not seem to pay.";
  part<MultiLevelTiling>(m, "Tiles the loops around reductions that read elements again, with copies between.",
                         kTilingDoc.c_str());
  static const std::string kIntrinDoc = std::string(
                                            "Blocks that do not fit stay as they are.\n\nArgs:\n"
                                            "    intrin_name: the name of the tensor intrinsic.\n") +
                                        kTilingArgs;
  part<MultiLevelTilingWithIntrin>(m, "Tiles what a tensor intrinsic computes, and the loops around that.",
                                   kIntrinDoc.c_str());
  part<MultiLevelTilingWideVector>(
      m, "Tiles with whole vector registers of the output as the innermost tile.",
      "Gives a schedule for each way to place copies.\n\nArgs:\n"
      "    structure: a word of S (spatial loops) and R (reduction loops), outermost tiles first.\n"
      "    vector_length_in_bits: of a register.\n"
      "    max_innermost_factor: of the sampled sizes; None for no limit.\n"
      "    reuse_read: copies of what is read.\n"
      "    reuse_write: a copy of what is written.");
}

/// A rule of Python's by name: a function of a schedule and a block.
Status register_python_rule(const std::string& name, nb::callable function, bool replace) {
  auto held = std::make_shared<HeldCallable>(std::move(function));
  auto rule = [held, name](schedule::Schedule schedule, schedule::BlockRV block) {
    return in_python("space/exception", [&]() -> Result<Schedules> {
      SchedulePtr copy = to_python(std::move(schedule));
      return made_by_rule("the rule '" + name + "'", held->callable(copy, PyBlock{copy, block}));
    });
  };
  return search::register_custom_rule(name, std::move(rule), replace);
}

/// Sets the Python function that returns a format by its name, for decompose_format.
template <class F>
void set_formats(F function) {
  schedule::set_format_templates([function](const schedule::FormatRequest& request) {
    return in_python("sparse/decompose", [&]() -> Result<schedule::FormatDecomposition> {
      nb::tuple made(
          function()(node_to_python(request.func), request.buffer, request.format, request.parameters, request.count));
      NodeRef node;
      if (!nb::try_cast(made[0], node) || !node.is<PrimFunc>()) {
        return argument_error("sparse/decompose", "the format gave no program", "return a PrimFunc");
      }
      return schedule::FormatDecomposition{node.cast<PrimFunc>(), nb::cast<std::vector<std::string>>(made[1])};
    });
  });
}

void set_python_formats(nb::callable function) {
  auto held = std::make_shared<HeldCallable>(std::move(function));
  set_formats([held] { return held->callable; });
}

/// Registers the formats of the package, which is imported when a step first uses one.
void set_own_formats() {
  set_formats([] { return nb::module_::import_("tilewright.sparse.templates").attr("decomposed_by_name"); });
}

}  // namespace

void bind_rules(nb::module_& m) {
  nb::class_<ScheduleRule, PythonScheduleRule>(
      m, "ScheduleRule",
      "What to do with one block. Subclasses define apply(), and initialize() where they need to know the target.")
      .def(nb::init<>())
      .def("initialize", &initialize_part<ScheduleRule>, "context"_a, "Called once, before the first apply().")
      .def("apply", &apply_rule, "sch"_a, "block"_a,
           "The schedules that the rule makes of one.\n\nArgs:\n"
           "    sch: a schedule, which stays as it is.\n"
           "    block: a block of it.\n\nReturns:\n"
           "    One or more schedules; that of before where the rule has nothing to say about the block.",
           nb::sig("def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]"))
      .def("clone", &clone_part<ScheduleRule>,
           "A rule like this one, for another context. A subclass that does not define it is shared.",
           nb::sig("def clone(self) -> ScheduleRule"))
      .def_static("defaults", &search::default_schedule_rules, "kind"_a,
                  "The rules for a kind of target: \"llvm\", \"avx512\", \"vnni\", \"cuda\", ...")
      .def_static("create", &search::default_schedule_rules, "kind"_a,
                  "The rules for a kind of target, by the name that TVM has for it: defaults().");
  bind_simple_rules(m);
  bind_tilings(m);
  bind_tensor_core_tiling(m);
  set_own_formats();
  m.def("set_format_templates", &set_python_formats, "function"_a,
        "Register the function that rewrites programs by formats with names.",
        nb::sig("def set_format_templates(function: Callable[..., tuple[PrimFunc, list[str]]]) -> None"));
  m.def("register_custom_rule", &register_python_rule, "name"_a, "function"_a, "replace"_a = false,
        "Register a function as the rule for blocks with an annotation.\n\nArgs:\n"
        "    name: \"meta_schedule.KEY.NAME\": for targets with KEY, blocks annotated {\"schedule_rule\": NAME}.\n"
        "    function: of a schedule and a block; gives schedules, as ScheduleRule.apply() does.\n"
        "    replace: the name may be taken.");
  m.def("rule_kind", &search::rule_kind, "target"_a, "What the default rules of a target are called.");
}

}  // namespace tilewright::python
