// Schedules, handles and traces. Each method of the class comes from a row of schedule/instructions.def: parameters,
// defaults, types and docstring are those of the aggregate.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <random>

#include "python/module.h"
#include "python/node_caster.h"
#include "schedule/schedule.h"
#include "script/printer.h"

namespace tilewright::python {
namespace {

using namespace schedule;

struct PySchedule {
  Schedule schedule;
  /// Python code has looked at a drawn value, so its later steps may depend on it.
  bool decisions_read = false;
  /// What the first, second, ... draw takes instead of drawing; None draws.
  std::vector<Value> given{};
};
using SchedulePtr = std::shared_ptr<PySchedule>;

/// A handle knows the row of the table and what the row holds, so a handle of another schedule is noticed.
template <class RV>
struct PyHandle {
  SchedulePtr owner;
  RV rv;
  const Handle& row() const { return owner->schedule.state().handle(rv.index); }
};
using PyLoop = PyHandle<LoopRV>;
using PyBlock = PyHandle<BlockRV>;
using PyExpr = PyHandle<ExprRV>;

int64_t read(const PyExpr& expr) {
  expr.owner->decisions_read = true;
  return expr.owner->schedule.state().value(expr.rv);
}

bool same_row(const Handle& a, const Handle& b) {
  if (a.target.index() != b.target.index()) return false;
  if (auto* loop = std::get_if<Ref<Var>>(&a.target)) return *loop == std::get<Ref<Var>>(b.target);
  if (auto* block = std::get_if<Handle::BlockId>(&a.target)) {
    return block->identity == std::get<Handle::BlockId>(b.target).identity;
  }
  return a.value_number() == b.value_number();
}

[[noreturn]] void fail(Diagnostic diagnostic) { throw Exception(std::move(diagnostic)); }

/// The handle, when this schedule or the one that it was copied from has given it.
template <class RV>
RV own(const State& state, const PyHandle<RV>& handle, std::string_view method) {
  if (handle.rv.index >= state.num_handles() || !same_row(state.handle(handle.rv.index), handle.row())) {
    fail(argument_error("schedule/handle", std::string(method) + "() got a handle that another schedule has given",
                        "get the handle from this schedule, or from the one it was copied from"));
  }
  return handle.rv;
}

/// The message with the program and the nodes it is about.
[[noreturn]] void fail_in(const PySchedule& self, Diagnostic diagnostic) {
  std::vector<ObjectPtr> nodes = diagnostic.nodes;
  diagnostic = script::located(std::move(diagnostic), self.schedule.module());
  diagnostic.nodes = std::move(nodes);
  fail(std::move(diagnostic));
}

std::string class_name(nb::handle object) { return nb::cast<std::string>(nb::str(object.type().attr("__name__"))); }

/// Turns arguments of one call into values.
class Arguments {
 public:
  Arguments(const SchedulePtr& self, const KindInfo& info) : self_(self), info_(info) {}

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
      values[param] = value(args[position], info_.params[param]);
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
      values[i] = value(item, info_.params[i]);
    }
    return values;
  }

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

  Value value(nb::handle object, const Param& param) {
    if (object.is_none()) return {None{}};
    if (PyBool_Check(object.ptr())) return {object.ptr() == Py_True};
    if (nb::isinstance<PyLoop>(object))
      return {own(self_->schedule.state(), nb::cast<const PyLoop&>(object), info_.method)};
    if (nb::isinstance<PyBlock>(object))
      return {own(self_->schedule.state(), nb::cast<const PyBlock&>(object), info_.method)};
    if (nb::isinstance<PyExpr>(object))
      return {own(self_->schedule.state(), nb::cast<const PyExpr&>(object), info_.method)};
    if (PyUnicode_Check(object.ptr())) return text(nb::cast<std::string>(object), param);
    if (PyIndex_Check(object.ptr())) return {integer(object, param)};
    if (PyFloat_Check(object.ptr()) || nb::hasattr(object, "__float__")) {
      return {PyFloat_AsDouble(nb::float_(nb::borrow(object)).ptr())};
    }
    if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
      Value::List list;
      for (nb::handle item : nb::borrow<nb::sequence>(object)) list.push_back(value(item, param));
      return {std::move(list)};
    }
    if (nb::isinstance<nb::dict>(object)) {
      std::map<std::string, Value> sorted;
      for (auto [key, item] : nb::borrow<nb::dict>(object)) {
        if (!PyUnicode_Check(key.ptr())) unfit(param, "a dict with a key that is no string");
        sorted.emplace(nb::cast<std::string>(key), value(item, param));
      }
      return {Value::Dict(sorted.begin(), sorted.end())};
    }
    return node(object, param);
  }

  /// A name stands for the block it names.
  Value text(std::string text, const Param& param) {
    if (param.type.find("BlockRV") == std::string::npos) return {std::move(text)};
    auto block = self_->schedule.apply(GetBlock{std::move(text), ""});
    if (!block.ok()) fail_in(*self_, std::move(block.error()));
    return {*block};
  }

  int64_t integer(nb::handle object, const Param& param) {
    nb::object index = nb::steal(PyNumber_Index(object.ptr()));
    int overflow = 0;
    long long number = index.is_valid() ? PyLong_AsLongLongAndOverflow(index.ptr(), &overflow) : 0;
    if (!index.is_valid() || overflow) {
      PyErr_Clear();
      unfit(param, "an integer beyond 64 bits");
    }
    return number;
  }

  /// lambda i, j: (j, i) is called with variables of these names.
  Value index_map(nb::handle function, const Param& param) {
    nb::object inspect = nb::module_::import_("inspect");
    IndexMap map;
    nb::list names;
    for (nb::handle p : inspect.attr("signature")(function).attr("parameters").attr("values")()) {
      if (p.attr("kind").equal(inspect.attr("Parameter").attr("VAR_POSITIONAL"))) {
        unfit(param, "a function of any number of indices");
      }
      map.initial_indices.emplace_back(var(nb::cast<std::string>(p.attr("name"))));
      names.append(NodeRef(map.initial_indices.back()));
    }
    nb::object result = function(*names);
    nb::list items;
    if (nb::isinstance<nb::tuple>(result) || nb::isinstance<nb::list>(result)) {
      items = nb::list(result);
    } else {
      items.append(result);
    }
    for (nb::handle item : items) {
      Expr e;
      if (!nb::try_cast(item, e) || !e.defined()) unfit(param, "a function that gives a '" + class_name(item) + "'");
      map.final_indices.push_back(std::move(e));
    }
    return {NodeRef(make<IndexMap>(std::move(map)))};
  }

  /// Constants of the IR are numbers; a buffer is itself.
  Value node(nb::handle object, const Param& param) {
    if (param.type.starts_with("Callable") && PyCallable_Check(object.ptr())) return index_map(object, param);
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
};

nb::object make_handle(const SchedulePtr& self, uint32_t number) {
  if (number == LoopRV::kNone) return nb::none();
  const Handle& row = self->schedule.state().handle(number);
  if (std::holds_alternative<Ref<Var>>(row.target)) return nb::cast(PyLoop{self, {number}});
  if (std::holds_alternative<int64_t>(row.target)) return nb::cast(PyExpr{self, {number}});
  return nb::cast(PyBlock{self, {number}});
}

nb::object call(const SchedulePtr& self, const KindInfo& info, const nb::args& args, const nb::kwargs& kwargs) {
  auto values = Arguments(self, info).bind(args, kwargs);
  auto instruction = info.build(info, values);
  if (!instruction.ok()) fail(std::move(instruction.error()));
  if (info.family == Family::kSample && !self->given.empty() && decision_of(*instruction).is_none()) {
    size_t draw = self->schedule.trace().decisions().size();
    if (draw < self->given.size()) {
      auto decided = with_decision(*instruction, self->given[draw]);
      if (!decided.ok()) fail(std::move(decided.error()));
      instruction = std::move(decided);
    }
  }
  auto outputs = self->schedule.apply(std::move(*instruction));
  if (!outputs.ok()) fail_in(*self, std::move(outputs.error()));
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
                          (program.defined() ? std::string(kind_name(program.kind())) : std::string("None")),
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

SchedulePtr make_schedule(const NodeRef& program, std::optional<int64_t> seed) {
  Schedule made = unwrap(Schedule::make(module_of(program), pick_seed(seed)));
  return std::make_shared<PySchedule>(PySchedule{std::move(made), false});
}

std::string show_handle(const PyLoop& loop) {
  auto place = loop.owner->schedule.state().find(loop.rv);
  const std::string& name = std::get<Ref<Var>>(loop.row().target)->name_hint;
  if (!place.ok()) return "Loop(" + name + ", expired)";
  std::string extent = script::print(place->loop().extent);
  return "Loop(" + name + ", extent=" + extent + ")";
}
std::string show_handle(const PyBlock& block) {
  auto place = block.owner->schedule.state().find(block.rv);
  if (!place.ok()) return "Block(" + std::get<Handle::BlockId>(block.row().target).name + ", expired)";
  return "Block(" + place->block().name_hint + ")";
}
std::string show_handle(const PyExpr& expr) {
  return "Expr(v" + std::to_string(expr.rv.index) + "=" + std::to_string(expr.row().value_number()) + ")";
}

template <class RV>
void bind_handle(nb::module_& m, const char* name, const char* doc) {
  nb::class_<PyHandle<RV>>(m, name, doc)
      .def("__repr__", [](const PyHandle<RV>& self) { return show_handle(self); })
      .def("__hash__", [](const PyHandle<RV>& self) { return self.rv.index; });
}

/// Reading a value gives a plain integer: the operators of int do the rest.
void bind_expr(nb::module_& m) {
  nb::class_<PyExpr> cls(m, "ExprRV",
                         "A drawn integer. Passing it on keeps it symbolic in the trace; int() and the operators read "
                         "it, which Schedule.decisions_read then says.");
  cls.def("__repr__", [](const PyExpr& self) { return show_handle(self); });
  cls.def("__int__", &read).def("__index__", &read).def("__hash__", &read);
  cls.def("__bool__", [](const PyExpr& self) { return read(self) != 0; });
  cls.def("__float__", [](const PyExpr& self) { return static_cast<double>(read(self)); });
  nb::object op = nb::module_::import_("operator");
  auto plain = [](nb::handle other) -> nb::object {
    if (nb::isinstance<PyExpr>(other)) return nb::int_(read(nb::cast<const PyExpr&>(other)));
    return nb::borrow(other);
  };
  static constexpr const char* kBinary[] = {"add", "sub", "mul", "floordiv", "mod", "truediv", "pow"};
  static constexpr const char* kCompare[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  for (const char* name : kBinary) {
    nb::object function = op.attr(name);
    std::string plainly = std::string("__") + name + "__", reflected = std::string("__r") + name + "__";
    cls.def(
        plainly.c_str(),
        [function, plain](const PyExpr& self, nb::handle other) -> nb::object {
          return function(nb::int_(read(self)), plain(other));
        },
        nb::is_operator(), nb::arg("other").none());
    cls.def(
        reflected.c_str(),
        [function, plain](const PyExpr& self, nb::handle other) -> nb::object {
          return function(plain(other), nb::int_(read(self)));
        },
        nb::is_operator(), nb::arg("other").none());
  }
  for (const char* name : kCompare) {
    nb::object function = op.attr(name);
    cls.def((std::string("__") + name + "__").c_str(),
            [function, plain](const PyExpr& self, nb::handle other) -> nb::object {
              return function(nb::int_(read(self)), plain(other));
            },
            nb::is_operator(), nb::arg("other").none());
  }
}

nb::object json_loads(const std::string& text) { return nb::module_::import_("json").attr("loads")(text); }

nb::object decision_to_python(const Value& value) {
  if (auto* number = value.as<int64_t>()) return nb::int_(*number);
  if (auto* list = value.as<Value::List>()) {
    nb::list result;
    for (const Value& item : *list) result.append(decision_to_python(item));
    return result;
  }
  return nb::none();
}
Value decision_from_python(nb::handle object) {
  if (object.is_none()) return {None{}};
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
    Value::List list;
    for (nb::handle item : nb::borrow<nb::sequence>(object)) list.push_back(decision_from_python(item));
    return {std::move(list)};
  }
  if (PyIndex_Check(object.ptr())) return {nb::cast<int64_t>(nb::int_(nb::borrow(object)))};
  fail(argument_error("schedule/decision",
                      "a decision is an integer or a list of integers, not a '" + class_name(object) + "'"));
}

void bind_trace(nb::module_& m) {
  nb::class_<Trace>(m, "Trace",
                    "The steps that led from the original program to the scheduled one, with their decisions. "
                    "Immutable.")
      .def("__len__", &Trace::size)
      .def("__str__", &Trace::script)
      .def("__repr__", &Trace::script)
      .def("as_python", &Trace::as_python, "One line of Python per step.")
      .def(
          "as_json", [](const Trace& self) { return json_loads(self.as_json()); },
          "The trace in TVM's JSON form, as nested lists.", nb::sig("def as_json(self) -> list[object]"))
      .def("simplified", &Trace::simplified, "The trace without lookups and draws whose results nothing uses.")
      .def_prop_ro(
          "decisions",
          [](const Trace& self) {
            nb::list result;
            for (const Value& value : self.decisions()) result.append(decision_to_python(value));
            return result;
          },
          "What each drawing step drew, in order.", nb::sig("def decisions(self) -> list[int | list[int] | None]"))
      .def_static(
          "from_json",
          [](nb::handle json) {
            std::string text = PyUnicode_Check(json.ptr())
                                   ? nb::cast<std::string>(json)
                                   : nb::cast<std::string>(nb::module_::import_("json").attr("dumps")(json));
            return unwrap(Trace::from_json(text));
          },
          nb::arg("json"), "The trace that as_json() gave, or its text.",
          nb::sig("def from_json(json: object) -> Trace"))
      .def(
          "apply_to_schedule",
          [](const Trace& self, PySchedule& target, bool fresh, const nb::object& decide) {
            ReplayOptions options;
            options.fresh = fresh;
            if (!decide.is_none()) {
              options.decide = [&](size_t draw) { return decision_from_python(decide(draw)); };
            }
            auto done = replay(self, target.schedule, options);
            if (!done.ok()) fail_in(target, std::move(done.error()));
          },
          nb::arg("sch"), nb::arg("fresh") = false, nb::arg("decide").none() = nb::none(),
          "Apply all steps to a schedule.\n\nArgs:\n"
          "    sch: a schedule of the program that the trace was recorded on, or of one with the same names.\n"
          "    fresh: draw all decisions anew, from the random stream of the schedule.\n"
          "    decide: called with the number of each drawing step; gives the decision to take, or None.",
          nb::sig("def apply_to_schedule(self, sch: Schedule, fresh: bool = False, "
                  "decide: Callable[[int], int | Sequence[int] | None] | None = None) -> None"));
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

void bind_class(nb::module_& m) {
  nb::class_<PySchedule> cls(m, "Schedule", "A program and the steps done to it.");
  cls.def(nb::new_(&make_schedule), nb::arg("program"), nb::kw_only(), nb::arg("seed").none() = nb::none(),
          "Start scheduling.\n\nArgs:\n"
          "    program: a PrimFunc, which becomes the function 'main' of a module, or an IRModule.\n"
          "    seed: of the random decisions; a random one by default.");
  cls.def_prop_ro("mod", [](const PySchedule& self) { return self.schedule.module(); }, "The program as it is now.");
  cls.def_prop_ro("trace", [](const PySchedule& self) { return self.schedule.trace(); }, "The steps so far.");
  cls.def_prop_ro(
      "func_working_on",
      [](const PySchedule& self) -> std::optional<std::string> {
        auto func = self.schedule.state().working_function();
        if (!func) return std::nullopt;
        return self.schedule.state().function_name(*func);
      },
      "The function that get_block looks into by default.");
  cls.def_rw("decisions_read", &PySchedule::decisions_read,
             "Whether Python code has read a drawn value, by int() or an operator: then another draw may need other "
             "steps, and the code has to be run again instead of replaying the trace.");
  cls.def(
      "work_on", [](PySchedule& self, const std::string& name) { unwrap_status(self.schedule.work_on(name)); },
      nb::arg("func_name"), "Let get_block look into this function by default.");
  cls.def(
      "copy",
      [](PySchedule& self) {
        return std::make_shared<PySchedule>(PySchedule{self.schedule.fork(), self.decisions_read});
      },
      "A copy with a random stream of its own. Handles of this schedule stay valid for the copy.");
  cls.def(
      "seed", [](PySchedule& self, int64_t seed) { self.schedule.seed(pick_seed(seed)); }, nb::arg("seed"),
      "Start the random stream anew; -1 for a random seed.");
  cls.def(
      "get",
      [](const SchedulePtr& self, const PyLoop& loop) {
        return NodeRef(unwrap(self->schedule.state().find(own(self->schedule.state(), loop, "get"))).node());
      },
      nb::arg("handle"), "The For node of a loop, the Block node of a block, the number that was drawn.",
      nb::sig("def get(self, handle: LoopRV) -> tilewright._core.For"));
  cls.def(
      "get",
      [](const SchedulePtr& self, const PyBlock& block) {
        Place place = unwrap(self->schedule.state().find(own(self->schedule.state(), block, "get")));
        return NodeRef(place.tree->block_ref(place.at));
      },
      nb::arg("handle"), nb::sig("def get(self, handle: BlockRV) -> tilewright._core.Block"));
  cls.def(
      "get",
      [](const SchedulePtr& self, const PyExpr& expr) {
        own(self->schedule.state(), expr, "get");
        return read(expr);
      },
      nb::arg("handle"), nb::sig("def get(self, handle: ExprRV) -> int"));
  cls.def(
      "take_decisions",
      [](PySchedule& self, const nb::list& decisions) {
        self.given.clear();
        for (nb::handle decision : decisions) self.given.push_back(decision_from_python(decision));
      },
      nb::arg("decisions"),
      "Let the first, second, ... draw of this schedule take a decision instead of drawing.\n\nArgs:\n"
      "    decisions: as Trace shows them: a position, or the factors of a tile; None draws.");
  cls.def(
      "with_decisions",
      [](const PySchedule& self, const nb::dict& changes) {
        std::map<size_t, Value> sorted;
        for (auto [draw, decision] : changes) sorted.emplace(nb::cast<size_t>(draw), decision_from_python(decision));
        auto result = self.schedule.with_decisions({sorted.begin(), sorted.end()});
        if (!result.ok()) fail_in(self, std::move(result.error()));
        return std::make_shared<PySchedule>(PySchedule{std::move(*result), false});
      },
      nb::arg("changes"),
      "The schedule with other decisions.\n\nArgs:\n"
      "    changes: decision by the number of the drawing step. Steps before the first are shared, not done again.",
      nb::sig("def with_decisions(self, changes: Mapping[int, int | Sequence[int]]) -> Schedule"));
  cls.def(
      "show",
      [](const PySchedule& self) {
        std::string text = script::print(self.schedule.module()) + "\n\n" + self.schedule.trace().script();
        nb::module_::import_("tilewright.script.display").attr("print_script")(text);
      },
      "Print the program and the trace, colored where the program would be.");
  cls.def("__repr__", [](const PySchedule& self) { return script::print(self.schedule.module()); });
  bind_methods(cls);
}

}  // namespace

void bind_schedule(nb::module_& m) {
  bind_handle<LoopRV>(m, "LoopRV", "A handle of a loop. It stays valid while the loop exists.");
  bind_handle<BlockRV>(m, "BlockRV", "A handle of a block. It stays valid while the block exists.");
  bind_expr(m);
  bind_trace(m);
  bind_class(m);
}

}  // namespace tilewright::python
