// Rules, which turn a schedule into others, block by block.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/process_exit.h"
#include "python/search_components.h"
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

namespace tilewright::python {
namespace {

using search::ScheduleRule;
using search::TuneContext;

/// A rule that has nothing to say returns the schedule; one that returns None has forgotten to return something.
Result<std::vector<schedule::Schedule>> made_by_rule(const std::string& rule, nb::handle answer) {
  constexpr const char* kHint = "return the schedule, or a list of them: [sch] where there is nothing to do";
  if (answer.is_none()) return argument_error("search/schedule", rule + " returned None", kHint);
  return schedules_of(answer, rule + " returned", kHint);
}

struct PythonScheduleRule final : ScheduleRule {
  NB_TRAMPOLINE(ScheduleRule);

  std::string name() const override {
    nb::gil_scoped_acquire gil;
    return class_name(nb::find(static_cast<const ScheduleRule*>(this)));
  }
  Status initialize(const TuneContext& context) override {
    return in_python("space/exception", [&]() -> Status {
      if (overrides<ScheduleRule>(this, "initialize"))
        overridden<ScheduleRule>(this, "initialize")(context_to_python(context));
      return Ok{};
    });
  }
  Result<std::vector<schedule::Schedule>> apply(schedule::Schedule schedule, schedule::BlockRV block) const override {
    return in_python("space/exception", [&]() -> Result<std::vector<schedule::Schedule>> {
      SchedulePtr copy = to_python(std::move(schedule));
      return made_by_rule(class_name(nb::find(static_cast<const ScheduleRule*>(this))) + ".apply()",
                          overridden<ScheduleRule>(this, "apply")(copy, PyBlock{copy, block}));
    });
  }
  std::shared_ptr<ScheduleRule> clone() const override { return cloned<ScheduleRule>(this); }
};

nb::list apply_rule(const ScheduleRule& rule, const SchedulePtr& schedule, const PyBlock& block) {
  if (auto* python = dynamic_cast<const PythonScheduleRule*>(&rule)) not_defined<ScheduleRule>(python, "apply");
  schedule::Schedule start = taken(schedule);
  schedule::BlockRV rv = own(*schedule, block, "apply");
  auto made = [&] {
    GilReleased release;
    return rule.apply(std::move(start), rv);
  }();
  if (!made.ok() && exception_behind(made.error()).is_valid()) fail(std::move(made.error()));
  if (!made.ok()) fail_in(*schedule, std::move(made.error()));
  nb::list result;
  for (schedule::Schedule& item : *made) result.append(to_python(std::move(item), *schedule));
  return result;
}

/// ReuseType("must", [4], "shared"), or None for none.
search::ReuseType reuse_of(nb::handle object) {
  search::ReuseType reuse;
  if (object.is_none()) return reuse;
  reuse.requirement = unwrap(search::ReuseType::parse(nb::cast<std::string>(object.attr("req"))));
  reuse.levels = nb::cast<std::vector<int64_t>>(object.attr("levels"));
  reuse.scope = nb::cast<std::string>(object.attr("scope"));
  return reuse;
}

/// What a function of a schedule and a block says about whether to tile it.
search::MultiLevelTilingOptions::Filter tiling_filter(const nb::object& function) {
  if (function.is_none()) return {};
  auto held = std::make_shared<HeldCallable>(nb::cast<nb::callable>(function));
  return [held](const schedule::Schedule& schedule, schedule::BlockRV block) {
    return in_python("space/exception", [&]() -> Result<bool> {
      SchedulePtr copy = to_python(schedule);
      return truth_of(held->callable(copy, PyBlock{copy, block}));
    });
  };
}

/// From {"init": name, "load_a": name, ...}.
search::TensorCoreIntrins tensor_core_intrins(const std::map<std::string, std::string>& group) {
  search::TensorCoreIntrins intrins;
  const std::pair<const char*, std::string*> names[] = {{"init", &intrins.init},
                                                        {"load_a", &intrins.load_a},
                                                        {"load_b", &intrins.load_b},
                                                        {"compute", &intrins.compute},
                                                        {"store", &intrins.store}};
  for (auto [key, name] : names) {
    auto found = group.find(key);
    if (found == group.end()) {
      unwrap_status(argument_error("multi_level_tiling/intrin", std::string("a group names no intrinsic for ") + key,
                                   "groups have init, load_a, load_b, compute and store"));
    }
    *name = found->second;
  }
  return intrins;
}

search::MultiLevelTilingOptions checked(search::MultiLevelTilingOptions options) {
  unwrap_status(search::MultiLevelTiling::check(options));
  return options;
}

void bind_simple_rules(nb::module_& m) {
  using namespace search;
  nb::class_<ApplyCustomRule, ScheduleRule>(
      m, "ApplyCustomRule", "Rules that blocks name in an annotation \"schedule_rule\", see register_custom_rule().")
      .def(nb::init<>());
  nb::class_<InlineConstantScalars, ScheduleRule>(
      m, "InlineConstantScalars", "Blocks that compute one number from nothing go into those that read it.")
      .def(nb::init<>());
  nb::class_<AutoInline, ScheduleRule>(
      m, "AutoInline", "Blocks without work of their own go into those that read them, or into their producer.")
      .def(
          "__init__",
          [](AutoInline* self, bool into_producer, bool into_consumer, bool inline_const_tensor,
             bool disallow_if_then_else, bool require_injective, bool require_ordered,
             const std::optional<std::vector<std::string>>& disallow_op) {
            new (self)
                AutoInline({into_producer, into_consumer, inline_const_tensor, disallow_if_then_else, require_injective,
                            require_ordered, disallow_op.value_or(std::vector<std::string>())});
          },
          nb::arg("into_producer"), nb::arg("into_consumer"), nb::arg("inline_const_tensor"),
          nb::arg("disallow_if_then_else"), nb::arg("require_injective"), nb::arg("require_ordered"),
          nb::arg("disallow_op").none() = nb::none(),
          "The conditions hold for functions that reduce something; in others every block may go.\n\nArgs:\n"
          "    into_producer: a block may go into the one complete block that computes what it reads.\n"
          "    into_consumer: a block may go into those that read it.\n"
          "    inline_const_tensor: a block that reads nothing does, whatever else is said here.\n"
          "    disallow_if_then_else: not if it stores, or computes, on a condition.\n"
          "    require_injective: not if an index of what it writes occurs twice in what it reads.\n"
          "    require_ordered: nor if they occur in another order.\n"
          "    disallow_op: nor if it calls one of these intrinsics, such as \"tir.exp\".");
  nb::class_<AddRFactor, ScheduleRule>(m, "AddRFactor",
                                       "Reductions with few spatial iterations are computed in parts, by rfactor.")
      .def(
          "__init__",
          [](AddRFactor* self, int64_t jobs, std::optional<int64_t> innermost) {
            new (self) AddRFactor(jobs, innermost.value_or(-1));
          },
          nb::arg("max_jobs_per_core") = 16, nb::arg("max_innermost_factor").none() = nb::none(),
          "Gives a schedule for either part of the split reduction, and the one of before.\n\nArgs:\n"
          "    max_jobs_per_core: that many spatial iterations for each core are enough.\n"
          "    max_innermost_factor: of the split; None for no limit.");
  nb::class_<CrossThreadReduction, ScheduleRule>(
      m, "CrossThreadReduction", "Reductions with few spatial iterations are computed by the threads of a team.")
      .def(nb::init<std::vector<int64_t>>(), nb::arg("thread_extents"),
           "Gives a schedule with threads, and the one of before.\n\nArgs:\n"
           "    thread_extents: how many threads, to be drawn from.");
  nb::class_<ParallelizeVectorizeUnroll, ScheduleRule>(
      m, "ParallelizeVectorizeUnroll", "Says how far a postprocessor may parallelize, vectorize and unroll.")
      .def(
          "__init__",
          [](ParallelizeVectorizeUnroll* self, int64_t jobs, int64_t vectorize,
             const std::optional<std::vector<int64_t>>& steps, bool is_explicit) {
            new (self)
                ParallelizeVectorizeUnroll({jobs, vectorize, steps.value_or(std::vector<int64_t>()), is_explicit});
          },
          nb::arg("max_jobs_per_core") = 16, nb::arg("max_vectorize_extent") = 16,
          nb::arg("unroll_max_steps").none() = nb::none(), nb::arg("unroll_explicit") = true,
          "By annotations of the root block.\n\nArgs:\n"
          "    max_jobs_per_core: iterations of parallel loops, for each core; -1 for no parallel loops.\n"
          "    max_vectorize_extent: iterations of vector loops; -1 for none.\n"
          "    unroll_max_steps: how much may be unrolled, to be drawn from; None for nothing.\n"
          "    unroll_explicit: in the program, rather than by the back end.");
  nb::class_<RandomComputeLocation, ScheduleRule>(m, "RandomComputeLocation",
                                                  "Blocks that nobody tiled are computed where a draw says.")
      .def(nb::init<>());
  nb::class_<AutoBind, ScheduleRule>(
      m, "AutoBind", "Gives the iterations of blocks that nobody tiled to the blocks and threads of a GPU.")
      .def(
          "__init__",
          [](AutoBind* self, int64_t blocks, const std::optional<std::vector<int64_t>>& extents, int64_t threads) {
            new (self) AutoBind(blocks, extents.value_or(std::vector<int64_t>{32, 64, 128, 256, 512, 1024}), threads);
          },
          nb::arg("max_threadblocks") = 256, nb::arg("thread_extents").none() = nb::none(),
          nb::arg("max_threads_per_block") = -1,
          "Fuses the outer spatial loops.\n\nArgs:\n"
          "    max_threadblocks: how many blocks there may be.\n"
          "    thread_extents: threads of a block, to be drawn from; None for 32, 64, ... 1024.\n"
          "    max_threads_per_block: how many of them there may be; -1 for what the target says.");
}

constexpr const char* kTilingArgs =
    "    structure: a word of S (spatial loops) and R (reduction loops), outermost tiles first.\n"
    "    tile_binds: thread axes for the first tiles.\n"
    "    max_innermost_factor: of the drawn sizes; None for no limit.\n"
    "    vector_load_lens: how many elements a thread copies at a time, to be drawn from.\n"
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
  nb::class_<MultiLevelTilingTensorCore, ScheduleRule>(
      m, "MultiLevelTilingTensorCore", "Tiles what tensor cores compute, with fragments that warps load and store.")
      .def(
          "__init__",
          [](MultiLevelTilingTensorCore* self, const std::vector<std::map<std::string, std::string>>& intrin_groups,
             const std::string& structure, const std::optional<std::vector<std::string>>& tile_binds,
             std::optional<int64_t> max_innermost_factor, const std::optional<std::vector<int64_t>>& vector_load_lens,
             nb::handle reuse_read, nb::handle reuse_write, bool use_software_pipeline) {
            std::vector<TensorCoreIntrins> groups;
            for (const auto& group : intrin_groups) groups.push_back(tensor_core_intrins(group));
            MultiLevelTilingOptions options = {structure,
                                               tile_binds.value_or(std::vector<std::string>()),
                                               max_innermost_factor.value_or(-1),
                                               vector_load_lens.value_or(std::vector<int64_t>()),
                                               reuse_of(reuse_read),
                                               reuse_of(reuse_write),
                                               {}};
            unwrap_status(MultiLevelTilingTensorCore::check(groups, options));
            new (self) MultiLevelTilingTensorCore(std::move(groups), std::move(options), use_software_pipeline);
          },
          nb::arg("intrin_groups"), nb::arg("structure"), nb::arg("tile_binds").none() = nb::none(),
          nb::arg("max_innermost_factor").none() = nb::none(), nb::arg("vector_load_lens").none() = nb::none(),
          nb::arg("reuse_read").none() = nb::none(), nb::arg("reuse_write").none() = nb::none(),
          nb::arg("use_software_pipeline") = false, kTensorCoreDoc.c_str());
}

void bind_tilings(nb::module_& m) {
  using namespace search;
  static const std::string kTilingDoc =
      std::string("Gives a schedule for each way to place copies.\n\nArgs:\n") + kTilingArgs +
      "    filter_fn: of a schedule and a block; true: tile it also where it does not seem to pay.";
  nb::class_<MultiLevelTiling, ScheduleRule>(
      m, "MultiLevelTiling", "Tiles the loops around reductions that read elements again, with copies between.")
      .def(
          "__init__",
          [](MultiLevelTiling* self, const std::string& structure,
             const std::optional<std::vector<std::string>>& tile_binds, std::optional<int64_t> max_innermost_factor,
             const std::optional<std::vector<int64_t>>& vector_load_lens, nb::handle reuse_read, nb::handle reuse_write,
             const nb::object& filter_fn) {
            new (self) MultiLevelTiling(
                checked({structure, tile_binds.value_or(std::vector<std::string>()), max_innermost_factor.value_or(-1),
                         vector_load_lens.value_or(std::vector<int64_t>()), reuse_of(reuse_read), reuse_of(reuse_write),
                         tiling_filter(filter_fn)}));
          },
          nb::arg("structure"), nb::arg("tile_binds").none() = nb::none(),
          nb::arg("max_innermost_factor").none() = nb::none(), nb::arg("vector_load_lens").none() = nb::none(),
          nb::arg("reuse_read").none() = nb::none(), nb::arg("reuse_write").none() = nb::none(),
          nb::arg("filter_fn").none() = nb::none(), kTilingDoc.c_str());
  static const std::string kIntrinDoc = std::string(
                                            "Blocks that do not fit stay as they are.\n\nArgs:\n"
                                            "    intrin_name: the name of the tensor intrinsic.\n") +
                                        kTilingArgs;
  nb::class_<MultiLevelTilingWithIntrin, ScheduleRule>(
      m, "MultiLevelTilingWithIntrin", "Tiles what a tensor intrinsic computes, and the loops around that.")
      .def(
          "__init__",
          [](MultiLevelTilingWithIntrin* self, const std::string& intrin_name, const std::string& structure,
             const std::optional<std::vector<std::string>>& tile_binds, std::optional<int64_t> max_innermost_factor,
             const std::optional<std::vector<int64_t>>& vector_load_lens, nb::handle reuse_read,
             nb::handle reuse_write) {
            unwrap_status(MultiLevelTilingWithIntrin::check_intrin(intrin_name));
            new (self)
                MultiLevelTilingWithIntrin(intrin_name, checked({structure,
                                                                 tile_binds.value_or(std::vector<std::string>()),
                                                                 max_innermost_factor.value_or(-1),
                                                                 vector_load_lens.value_or(std::vector<int64_t>()),
                                                                 reuse_of(reuse_read),
                                                                 reuse_of(reuse_write),
                                                                 {}}));
          },
          nb::arg("intrin_name"), nb::arg("structure"), nb::arg("tile_binds").none() = nb::none(),
          nb::arg("max_innermost_factor").none() = nb::none(), nb::arg("vector_load_lens").none() = nb::none(),
          nb::arg("reuse_read").none() = nb::none(), nb::arg("reuse_write").none() = nb::none(), kIntrinDoc.c_str());
  nb::class_<MultiLevelTilingWideVector, ScheduleRule>(
      m, "MultiLevelTilingWideVector", "Tiles with whole vector registers of the output as the innermost tile.")
      .def(
          "__init__",
          [](MultiLevelTilingWideVector* self, const std::string& structure, int64_t vector_length_in_bits,
             std::optional<int64_t> max_innermost_factor, nb::handle reuse_read, nb::handle reuse_write) {
            new (self) MultiLevelTilingWideVector(checked({structure,
                                                           {},
                                                           max_innermost_factor.value_or(-1),
                                                           {},
                                                           reuse_of(reuse_read),
                                                           reuse_of(reuse_write),
                                                           {}}),
                                                  vector_length_in_bits);
          },
          nb::arg("structure"), nb::arg("vector_length_in_bits"), nb::arg("max_innermost_factor").none() = nb::none(),
          nb::arg("reuse_read").none() = nb::none(), nb::arg("reuse_write").none() = nb::none(),
          "Gives a schedule for each way to place copies.\n\nArgs:\n"
          "    structure: a word of S (spatial loops) and R (reduction loops), outermost tiles first.\n"
          "    vector_length_in_bits: of a register.\n"
          "    max_innermost_factor: of the drawn sizes; None for no limit.\n"
          "    reuse_read: copies of what is read.\n"
          "    reuse_write: a copy of what is written.");
}

/// A rule of Python's by name: a function of a schedule and a block.
void register_python_rule(const std::string& name, nb::callable function, bool replace) {
  auto held = std::make_shared<HeldCallable>(std::move(function));
  auto rule = [held, name](schedule::Schedule schedule, schedule::BlockRV block) {
    return in_python("space/exception", [&]() -> Result<std::vector<schedule::Schedule>> {
      SchedulePtr copy = to_python(std::move(schedule));
      return made_by_rule("the rule '" + name + "'", held->callable(copy, PyBlock{copy, block}));
    });
  };
  unwrap_status(search::register_custom_rule(name, std::move(rule), replace));
}

}  // namespace

void bind_rules(nb::module_& m) {
  nb::class_<ScheduleRule, PythonScheduleRule>(
      m, "ScheduleRule",
      "What to do with one block. Subclasses define apply(), and initialize() where they need to know the target.")
      .def(nb::init<>())
      .def(
          "initialize",
          [](ScheduleRule& self, const TuneContext& context) {
            // Of a subclass in Python this is what it calls by super().
            if (!dynamic_cast<PythonScheduleRule*>(&self)) unwrap_status(self.initialize(context));
          },
          nb::arg("context"), "Called once, before the first apply().")
      .def("apply", &apply_rule, nb::arg("sch"), nb::arg("block"),
           "The schedules that the rule makes of one.\n\nArgs:\n"
           "    sch: a schedule, which stays as it is.\n"
           "    block: a block of it.\n\nReturns:\n"
           "    One or more schedules; that of before where the rule has nothing to say about the block.",
           nb::sig("def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]"))
      .def(
          "clone",
          [](const nb::object& self) {
            const auto& rule = nb::cast<const ScheduleRule&>(self);
            return dynamic_cast<const PythonScheduleRule*>(&rule) ? self : nb::cast(rule.clone());
          },
          "A rule like this one, for another context. A subclass that does not define it is shared.",
          nb::sig("def clone(self) -> ScheduleRule"))
      .def_static(
          "defaults", [](const std::string& kind) { return unwrap(search::default_schedule_rules(kind)); },
          nb::arg("kind"), "The rules for a kind of target: \"llvm\", \"avx512\", \"vnni\", \"cuda\", ...")
      .def_static(
          "create", [](const std::string& kind) { return unwrap(search::default_schedule_rules(kind)); },
          nb::arg("kind"), "The rules for a kind of target, by the name that TVM has for it: defaults().");
  bind_simple_rules(m);
  bind_tilings(m);
  bind_tensor_core_tiling(m);
  m.def("register_custom_rule", &register_python_rule, nb::arg("name"), nb::arg("function"), nb::arg("replace") = false,
        "Register a function as the rule for blocks with an annotation.\n\nArgs:\n"
        "    name: \"meta_schedule.KEY.NAME\": for targets with KEY, blocks annotated {\"schedule_rule\": NAME}.\n"
        "    function: of a schedule and a block; gives schedules, as ScheduleRule.apply() does.\n"
        "    replace: the name may be taken.");
  m.def("rule_kind", &search::rule_kind, nb::arg("target"), "What the default rules of a target are called.");
}

}  // namespace tilewright::python
