// Schedules. Each method of the class comes from a row of schedule/instructions.def: parameters,
// defaults, types and docstring are those of the aggregate.

#include <map>
#include <memory>
#include <random>

#include "analysis/verify_accesses.h"
#include "ir/verify.h"
#include "python/expired.h"
#include "python/schedule_objects.h"
#include "python/wording.h"
#include "schedule/buffers.h"
#include "schedule/field_traits.h"
#include "schedule/primitive.h"
#include "schedule/primitives/decompose_padding.h"
#include "schedule/primitives/get_block.h"
#include "schedule/primitives/get_sparse_iteration.h"
#include "schedule/primitives/set_axis_separator.h"
#include "schedule/primitives/transform_layout.h"
#include "schedule/sizes_by_name.h"
#include "schedule/sparse_nest.h"
#include "script/printer.h"
#include "sparse/lower_iterations.h"
#include "support/ranges.h"

namespace tilewright::python {

using namespace schedule;

void fail_in(const PySchedule& self, Diagnostic diagnostic) {
  std::vector<ObjectPtr> nodes = diagnostic.nodes;
  if (self.detail == ErrorDetail::kDetail) {
    diagnostic = script::located(std::move(diagnostic), self.schedule.module());
    diagnostic.nodes = std::move(nodes);
  } else if (self.detail == ErrorDetail::kNone) {
    diagnostic.rendered = "[" + diagnostic.code + "] (not rendered)";
  }
  fail(std::move(diagnostic));
}

std::string class_name(nb::handle object) { return nb::cast<std::string>(nb::str(object.type().attr("__name__"))); }

namespace {

/// Turns arguments of one call into values.
class ScheduleArguments {
 public:
  ScheduleArguments(const SchedulePtr& self, const KindInfo& info) : self_(self), info_(info) {}

  std::vector<std::optional<Value>> bind(const nb::args& args, const nb::kwargs& kwargs) {
    std::vector<std::optional<Value>> values(info_.params.size());
    size_t position = 0, param = 0;
    for (; position < args.size(); ++position, ++param) {
      if (param == info_.params.size()) {
        fail(argument_error(
            "schedule/argument",
            std::string(info_.method) + "() takes at most " + std::to_string(info_.params.size()) + " arguments",
            "its signature is " + info_.signature()));
      }
      if (info_.params[param].star) {
        values[param] = rest(args, position);
        break;
      }
      put(values, param, args[position]);
    }
    for (auto [key, item] : kwargs) {
      std::string name = nb::cast<std::string>(key);
      size_t i = 0;
      while (i < info_.params.size() && (info_.params[i].name != name || info_.params[i].star)) ++i;
      if (i == info_.params.size() || values[i]) {
        fail(argument_error("schedule/argument",
                            std::string(info_.method) + "() got " +
                                (i == info_.params.size() ? "an unknown argument '" : "twice the argument '") + name +
                                "'",
                            "its signature is " + info_.signature()));
      }
      put(values, i, item);
    }
    const nb::dict sizes = sizes_by_name(values);
    for (const auto& [i, function] : functions_) values[i] = index_map(function, i, arity(values, i), sizes);
    return values;
  }

  /// Axis separators that the index function returned.
  const std::vector<int64_t>& separators() const { return separators_; }

 private:
  /// Loops for *loops; one list of them is taken as well.
  Value rest(const nb::args& args, size_t from) {
    Value::List list;
    if (from + 1 == args.size() && (nb::isinstance<nb::list>(args[from]) || nb::isinstance<nb::tuple>(args[from]))) {
      return value(args[from], info_.params[0]);
    }
    for (size_t i = from; i < args.size(); ++i) list.push_back(value(args[i], info_.params[0]));
    return {std::move(list)};
  }

  /// Functions of indices are called when all else is known.
  void put(std::vector<std::optional<Value>>& values, size_t i, nb::handle object) {
    const Param& param = info_.params[i];
    if (param.takes_map && nb::isinstance<NodeBase>(object)) {
      values[i] = Value{nb::cast<NodeRef>(object)};
    } else if (param.takes_map && PyCallable_Check(object.ptr())) {
      values[i] = Value{None{}};
      functions_.emplace_back(i, nb::borrow(object));
    } else {
      values[i] = value(object, param);
    }
  }

  const Value* find(const std::vector<std::optional<Value>>& values, std::string_view name) const {
    for (size_t i : indices_of(values)) {
      if (info_.params[i].name == name && values[i]) return &*values[i];
    }
    return nullptr;
  }

  /// Returns the number of indices to pass to a variadic index function: the rank of the buffer, or of the block.
  std::optional<size_t> arity(const std::vector<std::optional<Value>>& values, size_t at) const {
    if (info_.params[at].name == "pad_value") {
      const Value* map = find(values, "index_map");
      const NodeRef* node = map ? map->as<NodeRef>() : nullptr;
      if (!node || !node->is<IndexMap>()) return std::nullopt;
      return node->as<IndexMap>()->final_indices.size();
    }
    const Value* block = find(values, "block");
    const BlockRV* rv = block ? block->as<BlockRV>() : nullptr;
    if (!rv) return std::nullopt;
    auto place = self_->schedule.state().find(*rv);
    if (!place.ok()) return std::nullopt;
    const Value* buffer = find(values, "buffer");
    if (!buffer) return place->block().iter_vars.size();
    TouchedBuffer chosen;
    if (!FieldTraits<TouchedBuffer>::from(*buffer, chosen)) return std::nullopt;
    auto found = touched_buffer(chosen, *place, "schedule/argument");
    if (!found.ok()) return std::nullopt;
    return (*found)->shape.size();
  }

  Value value(nb::handle object, const Param& param, int depth = 0) {
    if (depth > kMostNesting) unfit(param, "lists and dicts that are nested without end");
    if (object.is_none()) return {None{}};
    if (PyBool_Check(object.ptr())) return {object.ptr() == Py_True};
    if (nb::isinstance<PyLoop>(object)) return {own(*self_, nb::cast<const PyLoop&>(object), info_.method)};
    if (nb::isinstance<PyBlock>(object)) return {own(*self_, nb::cast<const PyBlock&>(object), info_.method)};
    if (nb::isinstance<PyExpr>(object)) return {own(*self_, nb::cast<const PyExpr&>(object), info_.method)};
    if (PyUnicode_Check(object.ptr())) return text(nb::cast<std::string>(object), param);
    if (PyIndex_Check(object.ptr())) return {integer(object, param)};
    // A class, such as int, has the method for its objects.
    if (PyFloat_Check(object.ptr()) || (!PyType_Check(object.ptr()) && nb::hasattr(object, "__float__"))) {
      double number = PyFloat_AsDouble(object.ptr());
      if (PyErr_Occurred()) {
        PyErr_Clear();
        unfit(param, "a '" + class_name(object) + "'");
      }
      return {number};
    }
    if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
      Value::List list;
      for (nb::handle item : nb::borrow<nb::sequence>(object)) {
        if (is_no_element(item, param)) {
          unfit(param,
                "a " + class_name(object) + " whose element " + std::to_string(list.size()) + " is " + text_of(item));
        }
        list.push_back(value(item, param, depth + 1));
      }
      return {std::move(list)};
    }
    if (nb::isinstance<nb::dict>(object)) {
      std::map<std::string, Value> sorted;
      for (auto [key, item] : nb::borrow<nb::dict>(object)) {
        if (!PyUnicode_Check(key.ptr())) unfit(param, "a dict with a key that is not a string");
        sorted.emplace(nb::cast<std::string>(key), value(item, param, depth + 1));
      }
      return {Value::Dict(sorted.begin(), sorted.end())};
    }
    return node(object, param);
  }

  /// Returns repr(item), or the name of its class if repr() fails.
  static std::string text_of(nb::handle item) {
    try {
      return nb::cast<std::string>(nb::repr(item));
    } catch (const nb::python_error& error) {
      if (!error.matches(PyExc_RecursionError)) throw;
      return "a nested " + class_name(item);
    }
  }

  /// Numbers with a fraction, texts and lists in a list of other things.
  static bool is_no_element(nb::handle item, const Param& param) {
    auto lacks = [&](std::string_view what) { return param.type.find(what) == std::string::npos; };
    if (!param.type.starts_with("Sequence[") || !lacks("Any")) return false;
    const bool is_list = nb::isinstance<nb::list>(item) || nb::isinstance<nb::tuple>(item);
    return (is_list && lacks("Sequence[Sequence") && lacks("tuple")) || (PyFloat_Check(item.ptr()) && lacks("float")) ||
           (PyUnicode_Check(item.ptr()) && lacks("str") && lacks("Block"));
  }

  /// A name stands for the block it names, in a sparse program for the iteration.
  Value text(std::string text, const Param& param) {
    if (!param.takes_blocks) return {std::move(text)};
    const State& state = self_->schedule.state();
    if (state.working_function() && sparse::is_sparse(state.function_at(*state.working_function()))) {
      return {unwrap_in(*self_, self_->schedule.apply(GetSparseIteration{std::move(text), ""}))};
    }
    return {unwrap_in(*self_, self_->schedule.apply(GetBlock{std::move(text), ""}))};
  }

  int64_t integer(nb::handle object, const Param& param) {
    nb::object index = nb::steal(PyNumber_Index(object.ptr()));
    int overflow = 0;
    long long number = index.is_valid() ? PyLong_AsLongLongAndOverflow(index.ptr(), &overflow) : 0;
    if (!index.is_valid() || overflow) {
      PyErr_Clear();
      unfit(param, overflow ? "an integer beyond 64 bits" : "a '" + class_name(object) + "'");
    }
    return number;
  }

  /// Returns the sizes that functions of indices may name without defining them, as in printed traces: lambda i, j: (i
  /// * n + j,).
  nb::dict sizes_by_name(const std::vector<std::optional<Value>>& values) const {
    nb::dict sizes;
    const Value* block = find(values, "block");
    const BlockRV* rv = block ? block->as<BlockRV>() : nullptr;
    const State& state = self_->schedule.state();
    if (!rv || !state.find(*rv).ok()) return sizes;
    for (const Ref<Var>& size : schedule::sizes_of(state, state.handle(rv->index).func)) {
      const nb::str name(size->name_hint.c_str());
      if (!sizes.contains(name)) sizes[name] = node_to_python(size);
    }
    return sizes;
  }

  /// lambda i, j: (j, i) is called with variables of these names.
  Value index_map(nb::handle function, size_t at, std::optional<size_t> arity, const nb::dict& sizes) {
    const Param& param = info_.params[at];
    nb::object trace = nb::module_::import_("tilewright.script.tir.index_maps").attr("index_map_with_separators");
    nb::object count = arity ? nb::object(nb::int_(*arity)) : nb::none();
    nb::tuple made =
        nb::tuple(trace(function, "ndim"_a = count, "ranges"_a = param.name == "gen_new_ranges", "sizes"_a = sizes));
    if (param.name == "index_map") separators_ = nb::cast<std::vector<int64_t>>(made[1]);
    return {nb::cast<NodeRef>(made[0])};
  }

  /// Constants of the IR are numbers; a buffer is itself.
  Value node(nb::handle object, const Param& param) {
    NodeRef node;
    if (nb::try_cast(object, node) && node.defined()) {
      if (const IntImm* number = node.as<IntImm>()) return {number->value};
      if (const FloatImm* number = node.as<FloatImm>()) return {number->value};
      if (const StringImm* string = node.as<StringImm>()) return text(string->value, param);
      return {node};
    }
    unfit(param, "a '" + class_name(object) + "'");
  }

  [[noreturn]] void unfit(const Param& param, const std::string& got) {
    fail(argument_error("schedule/argument",
                        std::string(info_.method) + "(): the argument '" + std::string(param.name) + "' takes " +
                            param.type + ", not " + got,
                        "its signature is " + info_.signature()));
  }

  const SchedulePtr& self_;
  const KindInfo& info_;
  std::vector<std::pair<size_t, nb::object>> functions_;
  std::vector<int64_t> separators_;
};

/// Checks the result of a primitive: the program is well formed and its declared regions hold.
void check_state(const PySchedule& self, const KindInfo& info) {
  Status status = verify(self.schedule.module(), Stage::kScheduled);
  if (status.ok()) status = analysis::verify_accesses(self.schedule.module());
  if (status.ok()) return;
  Diagnostic found = std::move(status.error());
  found.message = std::string(info.method) + "() left a program that is not well formed: " + found.message;
  found.hint = "this is a defect of Tilewright, please report it with the script and the trace";
  fail_in(self, std::move(found));
}

/// Applies the AXIS_SEPARATOR markers of a layout. Restores the schedule if they are refused.
void separate_axes(const SchedulePtr& self, const schedule::Schedule& before, const std::vector<int64_t>& separators) {
  const auto& done = *self->schedule.trace().steps().back()->instruction.as<TransformLayout>();
  auto outputs = self->schedule.apply(
      Instruction(SetAxisSeparator{.block = done.block, .buffer = done.buffer, .axis_separators = separators}));
  if (outputs.ok()) return;
  self->schedule = before;
  fail_in(*self, std::move(outputs.error()));
}

nb::object call(const SchedulePtr& self, const KindInfo& info, const nb::args& args, const nb::kwargs& kwargs) {
  ScheduleArguments arguments(self, info);
  auto values = arguments.bind(args, kwargs);
  Instruction instruction = unwrap(info.build(info, values));
  std::optional<schedule::Schedule> before;
  if (!arguments.separators().empty()) before = self->schedule;
  auto outputs = self->schedule.apply(std::move(instruction));
  if (!outputs.ok()) fail_in(*self, with_remover(*self, handles_in(values), std::move(outputs.error())));
  if (before) separate_axes(self, *before, arguments.separators());
  if (self->debug && info.family == Family::kTransform) check_state(*self, info);
  if (info.returns == Shape::kNothing) return nb::none();
  if (info.returns == Shape::kOne) return make_handle(self, (*outputs)[0]);
  nb::list list;
  for (uint32_t number : *outputs) list.append(make_handle(self, number));
  return list;
}

Ref<Module> module_of(const NodeRef& program) {
  if (program.is<Module>()) return program.borrow<Module>();
  if (program.is<PrimFunc>()) return make<Module>({.functions = {{"main", Func(program)}}, .attrs = {}});
  fail(argument_error("schedule/program",
                      "a schedule is made from a PrimFunc or an IRModule, not from " +
                          (program.defined() ? kind_name(program.kind()) : std::string("None")),
                      "pass what @T.prim_func or @I.ir_module gives"));
}

uint64_t pick_seed(std::optional<int64_t> seed) {
  if (!seed || *seed == -1) {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }
  if (*seed < 0) {
    fail(argument_error("schedule/seed", "the seed is " + std::to_string(*seed) + "; it cannot be negative",
                        "leave it out for a random one"));
  }
  return static_cast<uint64_t>(*seed);
}

ErrorDetail detail_named(const std::string& name) {
  if (name == "detail") return ErrorDetail::kDetail;
  if (name == "fast") return ErrorDetail::kFast;
  if (name == "none") return ErrorDetail::kNone;
  fail(argument_error("schedule/error-level", "the error_render_level is '" + name + "'",
                      "use 'detail', 'fast' (without the program) or 'none' (the rule only)"));
}

bool debug_named(const std::string& mask) {
  if (mask == "all" || mask == "none") return mask == "all";
  fail(argument_error("schedule/debug-mask", "the debug_mask is '" + mask + "'",
                      "use 'all' (check the whole program after each step) or 'none'"));
}

SchedulePtr make_schedule(const NodeRef& program, std::optional<int64_t> seed, const std::string& error_render_level,
                          const std::string& debug_mask) {
  bool debug = debug_named(debug_mask);
  ErrorDetail detail = detail_named(error_render_level);
  auto result = std::make_shared<PySchedule>(PySchedule{unwrap(Schedule::make(module_of(program), pick_seed(seed)))});
  result->detail = detail;
  result->debug = debug;
  result->original = result->schedule.module();
  return result;
}

void bind_methods(nb::class_<PySchedule>& cls) {
  // nanobind keeps pointers to names, documentation and signatures: the table of kinds and this list outlive it.
  static std::vector<std::unique_ptr<std::string>> texts;
  auto keep_text = [](std::string text) {
    texts.push_back(std::make_unique<std::string>(std::move(text)));
    return texts.back()->c_str();
  };
  for (const KindInfo& info : all_kinds()) {
    const KindInfo* row = &info;
    cls.def(
        keep_text(std::string(info.method)),
        [row](const SchedulePtr& self, const nb::args& args, const nb::kwargs& kwargs) {
          return call(self, *row, args, kwargs);
        },
        nb::sig(keep_text(info.signature())), keep_text(std::string(info.doc)));
  }
}

/// A copy that starts as this schedule is.
SchedulePtr with_schedule(const PySchedule& self, Schedule schedule) {
  auto result = std::make_shared<PySchedule>(PySchedule{std::move(schedule)});
  result->detail = self.detail;
  result->debug = self.debug;
  result->original = self.original;
  return result;
}

/// Python's tilewright.task.verification, which says what is compared.
nb::object verify_schedule(nb::handle self, nb::handle inputs, double seconds) {
  nb::object verify = nb::module_::import_("tilewright.task.verification").attr("verify");
  return verify(self, inputs, "seconds"_a = seconds);
}

/// Defines pickling by the original program, the trace, and the error level. Handles are not pickled.
void bind_pickling(nb::class_<PySchedule>& cls) {
  cls.def("__reduce__", [](const nb::object& self) {
    const auto& schedule = nb::cast<const PySchedule&>(self);
    static constexpr const char* kLevels[] = {"detail", "fast", "none"};
    return nb::make_tuple(nb::module_::import_("tilewright.schedule").attr("replayed"),
                          nb::make_tuple(schedule.original, self.attr("trace").attr("as_json")(),
                                         kLevels[static_cast<int>(schedule.detail)]));
  });
}

void bind_lookup(nb::class_<PySchedule>& cls) {
  cls.def(
      "get",
      [](const SchedulePtr& self, const PyLoop& loop) {
        const LoopRV rv = own(*self, loop, "get");
        const State& state = self->schedule.state();
        if (auto place = state.find(rv); place.ok()) return NodeRef(place->node());
        if (auto nest = find_nest(state, {rv}, "schedule/expired"); nest.ok()) {
          return NodeRef(nest->iteration->iter_vars[nest->at[0]]);
        }
        return NodeRef(place_of(*self, rv).node());  // raises
      },
      "handle"_a,
      "The For node of a loop, the Block node of a block, the sampled number. Of an iteration over sparse axes, before "
      "it is\nlowered, the SparseIteration node, and of each of its variables the SpIterVar node.",
      nb::sig("def get(self, handle: LoopRV) -> tilewright._core.For | Any"));
  cls.def(
      "get",
      [](const SchedulePtr& self, const PyBlock& block) {
        const BlockRV rv = own(*self, block, "get");
        if (is_iteration(self->schedule.state(), rv)) {
          return NodeRef(unwrap_in(*self, find_iteration(self->schedule.state(), rv, "schedule/expired")).iteration);
        }
        const Place place = place_of(*self, rv);
        return NodeRef(place.tree->block_ref(place.at));
      },
      "handle"_a, nb::sig("def get(self, handle: BlockRV) -> tilewright._core.Block | Any"));
  cls.def(
      "get",
      [](const SchedulePtr& self, const PyExpr& expr) {
        own(*self, expr, "get");
        return read(expr);
      },
      "handle"_a, nb::sig("def get(self, handle: ExprRV) -> int"));
  static constexpr const char* kDecomposes = "can_decompose_padding";
  cls.def(
      kDecomposes,
      [](const PySchedule& self, const PyBlock& block, const PyLoop& loop) {
        return plan(self.schedule.state(),
                    DecomposePadding{own(self, block, kDecomposes), own(self, loop, kDecomposes)})
            .ok();
      },
      "block"_a, "loop"_a, "Whether decompose_padding() would accept the block and the loop.");
  cls.def(
      kDecomposes,
      [](const PySchedule& self, const std::string& block, const PyLoop& loop) {
        Schedule trial = self.schedule;
        BlockRV named = unwrap(trial.apply(GetBlock{block, ""}));
        return plan(trial.state(), DecomposePadding{named, own(self, loop, kDecomposes)}).ok();
      },
      "block"_a, "loop"_a);
  auto remove = [](PySchedule& self, const auto& handle) {
    self.schedule.forget(own(self, handle, "remove_rv").index);
  };
  const char* doc = "Forget a handle: the schedule no longer takes it. Its steps stay in the trace.";
  cls.def("remove_rv", [=](PySchedule& self, const PyLoop& rv) { remove(self, rv); }, "rand_var"_a, doc);
  cls.def("remove_rv", [=](PySchedule& self, const PyBlock& rv) { remove(self, rv); }, "rand_var"_a);
  cls.def("remove_rv", [=](PySchedule& self, const PyExpr& rv) { remove(self, rv); }, "rand_var"_a);
}

/// Other schedules of the same original program.
void bind_replay(nb::class_<PySchedule>& cls) {
  cls.def(
      "with_decisions",
      [](const PySchedule& self, const nb::dict& changes) {
        std::map<size_t, Value> sorted;
        for (auto [sample, decision] : changes)
          sorted.emplace(nb::cast<size_t>(sample), decision_from_python(decision));
        return with_schedule(self, unwrap_in(self, self.schedule.with_decisions({sorted.begin(), sorted.end()})));
      },
      "changes"_a,
      "The schedule with other decisions.\n\nArgs:\n"
      "    changes: decision by the number of the sampling step, which has to fit. Steps before the first are shared, "
      "not done again.",
      nb::sig("def with_decisions(self, changes: Mapping[int, int | Sequence[int]]) -> Schedule"));
  cls.def(
      "replay_from",
      [](const SchedulePtr& self, int64_t first, const nb::dict& edits, bool fresh) {
        // No step has a number below 0, nor so large a one.
        auto number = [](int64_t given) { return given < 0 ? SIZE_MAX : static_cast<size_t>(given); };
        const size_t step = number(first);
        std::vector<TraceEdit> changes;
        for (auto [at, instead] : edits) {
          changes.push_back(edit_from_python(self, number(nb::cast<int64_t>(at)), instead));
        }
        ReplayOptions options{.fresh = fresh};
        if (fresh) options.random = Random(self->schedule.fork_seed());  // not the samples of before
        return with_schedule(*self, unwrap_in(*self, self->schedule.replay_from(step, changes, options)));
      },
      "step"_a, "edits"_a = nb::dict(), nb::kw_only(), "fresh"_a = false,
      "The schedule with its steps from one on done again, some of them otherwise.\n\nArgs:\n"
      "    step: the first step that is done again, a position in trace.insts. All before is shared.\n"
      "    edits: by position what shall stand there instead: an Instruction with as many outputs, another decision of "
      "a sampling step, or None to remove the step.\n"
      "    fresh: sample all decisions from that step on anew.",
      nb::sig("def replay_from(self, step: int, edits: Mapping[int, Instruction | int | Sequence[int] | None] = {}, *, "
              "fresh: bool = False) -> Schedule"));
  cls.def(
      "with_trace",
      [](const PySchedule& self, nb::handle trace) {
        return with_schedule(self, unwrap_in(self, self.schedule.with_trace(trace_from_python(trace))));
      },
      "trace"_a,
      "What another trace makes of the same original program. Steps that both traces begin with are shared, not done "
      "again.\n\nArgs:\n    trace: of any schedule, read, or built manually.",
      nb::sig("def with_trace(self, trace: Trace) -> Schedule"));
}

void bind_verify(nb::class_<PySchedule>& cls) {
  cls.def(
      "verify", &verify_schedule, "inputs"_a = nb::none(), nb::kw_only(), "seconds"_a = 10.0,
      "Compare the program as it is now with the original one, in the reference interpreter.\n\n"
      "Both run on random arguments, several sizes where shapes are symbolic, with all checks of the interpreter:\n"
      "bounds, uninitialized memory, races. Programs that take too long are compared at single elements, edges "
      "first,\neach computed by a backward slice. Floats may differ by the rounding of sums in another order.\n\n"
      "Args:\n"
      "    inputs: arrays for some parameters by name, such as indices, whose random values would be out of bounds, "
      "and\n"
      "        numbers for scalars.\n"
      "    seconds: the time for both programs and all arguments; to find the step that a difference is due to, it may "
      "take\n        as long again.\n\n"
      "Returns:\n"
      "    A tilewright.task.verification.Verification: what was compared, and which steps rest on statements.\n\n"
      "Raises:\n"
      "    tilewright.ScheduleError: the programs differ; the message names the first step after which they do.\n"
      "    tilewright.ResourceError: nothing was compared: a program takes too long, even at single elements.\n"
      "    tilewright.ScriptError: the original program does something undefined.",
      nb::sig("def verify(self, inputs: collections.abc.Mapping[str, Any] | None = None, *, seconds: float = 10.0) "
              "-> tilewright.task.verification.Verification"));
}

void bind_copies(nb::class_<PySchedule>& cls) {
  cls.def(
      "copy",
      [](nb::handle self) {
        auto& schedule = nb::cast<PySchedule&>(self);
        SchedulePtr copy = with_schedule(schedule, schedule.schedule.fork());
        copy->decisions_read = schedule.decisions_read;
        if (self.type().is(nb::type<PySchedule>())) return nb::cast(copy);
        nb::object derived = nb::inst_alloc(self.type());
        new (nb::inst_ptr<PySchedule>(derived)) PySchedule(std::move(*copy));
        nb::inst_mark_ready(derived);
        return derived;
      },
      "A copy with a random stream of its own, of the class of this schedule. Handles of this schedule stay\nvalid for "
      "the copy.",
      nb::sig("def copy(self) -> typing.Self"));
  cls.def(
      "seen_as",
      [](nb::handle self, nb::type_object type) {
        if (PyObject_IsSubclass(type.ptr(), nb::type<PySchedule>().ptr()) != 1) {
          fail(argument_error("schedule/class", "a schedule is seen as an object of a subclass of Schedule",
                              "pass a class that derives from it"));
        }
        return nb::inst_reference(type, nb::inst_ptr<PySchedule>(self), self);
      },
      "type"_a, "The same schedule as an object of a subclass: what is done to one is done to the other.",
      nb::sig("def seen_as(self, type: type[Schedule]) -> Schedule"));
}

void bind_class(nb::class_<PySchedule>& cls) {
  cls.def(nb::new_(&make_schedule), "program"_a, nb::kw_only(), "seed"_a = nb::none(),
          "error_render_level"_a = "detail", "debug_mask"_a = "none",
          "Start scheduling.\n\nArgs:\n"
          "    program: a PrimFunc, which becomes the function 'main' of a module, or an IRModule.\n"
          "    seed: of the random decisions; a random one by default.\n"
          "    error_render_level: what a refusal shows: 'detail' with the program, 'fast' without it, 'none' only "
          "the rule.\n"
          "    debug_mask: 'all' checks the whole program after each step: that it is well formed and that declared "
          "regions hold; 'none' trusts the steps.");
  cls.def_prop_ro("mod", [](const PySchedule& self) { return self.schedule.module(); }, "The program as it is now.");
  cls.def_ro("original", &PySchedule::original, "The program that the first step was done on.");
  cls.def_prop_ro(
      "trace", [](const SchedulePtr& self) { return PyTrace{self->schedule.trace(), self, true, false}; },
      "The steps so far.", nb::sig("def trace(self) -> Trace"));
  cls.def_prop_ro(
      "func_working_on",
      [](const PySchedule& self) -> nb::object {
        auto func = self.schedule.state().working_function();
        if (!func) return nb::none();
        return nb::cast(make<GlobalVar>({self.schedule.state().function_name(*func)}));
      },
      "The function that get_block looks into by default.", nb::sig("def func_working_on(self) -> GlobalVar | None"));
  cls.def_prop_ro(
      "error_render_level",
      [](const PySchedule& self) {
        return self.detail == ErrorDetail::kDetail ? "detail" : self.detail == ErrorDetail::kFast ? "fast" : "none";
      },
      "What a refusal shows.");
  cls.def_rw(
      "decisions_read", &PySchedule::decisions_read,
      "Whether Python code has read a sampled value, by int() or an operator: then another sample may need other "
      "steps, and the code has to be run again instead of replaying the trace.");
  cls.def(
      "work_on", [](PySchedule& self, const std::string& name) { return self.schedule.work_on(name); }, "func_name"_a,
      "Let get_block look into this function by default.");
  bind_copies(cls);
  cls.def(
      "seed", [](PySchedule& self, int64_t seed) { self.schedule.seed(pick_seed(seed)); }, "seed"_a,
      "Start the random stream anew; -1 for a random seed.");
  cls.def(
      "fork_seed", [](PySchedule& self) { return self.schedule.fork_seed(); },
      "A seed for another schedule, from the random stream of this one.");
  bind_lookup(cls);
  bind_verify(cls);
  cls.def(
      "take_decisions",
      [](PySchedule& self, const nb::list& decisions) {
        std::vector<Value> given;
        for (nb::handle decision : decisions) given.push_back(decision_from_python(decision));
        self.schedule.take_decisions(std::move(given));
      },
      "decisions"_a,
      "Let the first, second, ... sampling step of this schedule take a decision instead of sampling.\n\nArgs:\n"
      "    decisions: as Trace shows them: a position, or the factors of a tile; None samples.");
  bind_replay(cls);
  cls.def(
      "show",
      [](nb::handle self, const std::optional<std::string>& style, std::optional<bool> black_format,
         const nb::kwargs& options) {
        nb::object text =
            self.attr("mod").attr("script")(**options) + nb::str("\n\n") + self.attr("trace").attr("__str__")();
        nb::module_::import_("tilewright.script.display").attr("print_script")(text, style, black_format);
      },
      "style"_a = nb::none(), "black_format"_a = nb::none(), "options"_a,
      "Print the program and the trace, colored where the program would be.\n\nArgs:\n"
      "    style: as of a program's show().\n    black_format: as of a program's show().\n"
      "    options: those of a program's script().");
  cls.def("__str__", [](const PySchedule& self) { return print_in_words(self.schedule.module(), {}); });
  cls.def("__repr__", [](const PySchedule& self) {
    std::string names;
    for (const auto& [name, func] : self.schedule.module()->functions) names += (names.empty() ? "" : ", ") + name;
    size_t steps = self.schedule.trace().size();
    return "<Schedule of " + names + ", " + std::to_string(steps) + (steps == 1 ? " step>" : " steps>");
  });
  bind_pickling(cls);
  bind_methods(cls);
}

}  // namespace

void bind_schedule(nb::module_& m) {
  bind_handles(m);
  bind_trace(m);
  nb::class_<PySchedule> cls(m, "Schedule", "A program and the steps done to it.");
  bind_class(cls);
  bind_schedule_state(m, cls);
}

}  // namespace tilewright::python
