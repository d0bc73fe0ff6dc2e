// Traces and the instructions that they are made of.

#include <map>

#include "python/json_text.h"
#include "python/schedule_objects.h"
#include "python/wording.h"
#include "schedule/check_decision.h"
#include "schedule/sparse_instructions.h"
#include "support/closest.h"
#include "support/ranges.h"

namespace tilewright::python {

using namespace schedule;

nb::object decision_to_python(const Value& value) {
  if (auto* number = value.as<int64_t>()) return nb::int_(*number);
  if (auto* list = value.as<Value::List>()) {
    nb::list result;
    for (const Value& item : *list) result.append(decision_to_python(item));
    return result;
  }
  return nb::none();
}
namespace {

/// Checks the depth of a list or dict inside of others.
void check_nesting(const char* code, int depth) {
  if (depth <= kMostNesting) return;
  fail(argument_error(code, "lists and dicts are nested without end", "one of them holds itself"));
}

Value nested_decision(nb::handle object, int depth) {
  check_nesting("schedule/decision", depth);
  if (object.is_none()) return {None{}};
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
    Value::List list;
    for (nb::handle item : nb::borrow<nb::sequence>(object)) list.push_back(nested_decision(item, depth + 1));
    return {std::move(list)};
  }
  if (PyIndex_Check(object.ptr())) return {nb::cast<int64_t>(nb::int_(nb::borrow(object)))};
  fail(argument_error("schedule/decision",
                      "a decision is an integer or a list of integers, not a '" + class_name(object) + "'",
                      "such as 2, or [4, 8] for a tile"));
}

}  // namespace

Value decision_from_python(nb::handle object) { return nested_decision(object, 0); }

namespace {

nb::object json_loads(const std::string& text) { return nb::module_::import_("json").attr("loads")(text); }

struct PyKind {
  const KindInfo* info;
};

/// An instruction as traces write it: lists of handles, numbers, strings, lists, dicts, index maps.
struct PyInstruction {
  const KindInfo* kind;
  nb::list inputs, attrs, outputs;
};

bool is_row(const SchedulePtr& owner, uint32_t number) {
  return owner && number < owner->schedule.state().num_handles();
}

template <class RV>
nb::object handle_to_python(RV rv, const SchedulePtr& owner) {
  return nb::cast(PyHandle<RV>{is_row(owner, rv.index) ? owner : nullptr, rv});
}

/// Handles that are no rows of the owner stand for themselves.
nb::object to_python(const Value& value, const SchedulePtr& owner) {
  struct Convert {
    const SchedulePtr& owner;
    nb::object operator()(None) const { return nb::none(); }
    nb::object operator()(bool b) const { return nb::bool_(b); }
    nb::object operator()(int64_t i) const { return nb::int_(i); }
    nb::object operator()(double d) const { return nb::float_(d); }
    nb::object operator()(const std::string& s) const { return nb::str(s.c_str(), s.size()); }
    nb::object operator()(LoopRV rv) const { return handle_to_python(rv, owner); }
    nb::object operator()(BlockRV rv) const { return handle_to_python(rv, owner); }
    nb::object operator()(ExprRV rv) const { return handle_to_python(rv, owner); }
    nb::object operator()(const NodeRef& node) const { return node_to_python(node); }
    nb::object operator()(const Value::List& list) const {
      nb::list result;
      for (const Value& item : list) result.append(to_python(item, owner));
      return result;
    }
    nb::object operator()(const Value::Dict& dict) const {
      nb::dict result;
      for (const auto& [key, item] : dict) result[key.c_str()] = to_python(item, owner);
      return result;
    }
  };
  return std::visit(Convert{owner}, value.data);
}

nb::object output_to_python(const KindInfo& kind, uint32_t number, const SchedulePtr& owner) {
  if (number == LoopRV::kNone) return nb::none();
  if (kind.gives == HandleKind::kLoop) return to_python({LoopRV{number}}, owner);
  if (kind.gives == HandleKind::kBlock) return to_python({BlockRV{number}}, owner);
  return to_python({ExprRV{number}}, owner);
}

PyInstruction to_python(const Step& step, const Instruction& instruction, const SchedulePtr& owner) {
  PyInstruction result{&kind_info(instruction), {}, {}, {}};
  RecordedParts parts = parts_of(instruction);
  for (const Value& input : parts.inputs) result.inputs.append(to_python(input, owner));
  for (const Value& attr : parts.attrs) result.attrs.append(to_python(attr, owner));
  for (uint32_t number : step.outputs) result.outputs.append(output_to_python(*result.kind, number, owner));
  return result;
}

/// Turns instructions into steps of a trace: their handles are of one schedule, or of none.
class StepReader {
 public:
  explicit StepReader(SchedulePtr& owner) : owner_(owner) {}

  Step read(const PyInstruction& instruction, const Value& decision) {
    RecordedParts parts;
    for (nb::handle input : instruction.inputs) parts.inputs.push_back(value(input));
    for (nb::handle attr : instruction.attrs) parts.attrs.push_back(value(attr));
    Step step{unwrap(from_parts(*instruction.kind, parts, decision)), {}, nullptr};
    for (nb::handle output : instruction.outputs) step.outputs.push_back(number(output));
    return step;
  }

 private:
  Value value(nb::handle object, int depth = 0) {
    check_nesting("schedule/argument", depth);
    if (object.is_none()) return {None{}};
    if (PyBool_Check(object.ptr())) return {object.ptr() == Py_True};
    if (nb::isinstance<PyLoop>(object)) return {LoopRV{number(object)}};
    if (nb::isinstance<PyBlock>(object)) return {BlockRV{number(object)}};
    if (nb::isinstance<PyExpr>(object)) return {ExprRV{number(object)}};
    if (PyUnicode_Check(object.ptr())) return {nb::cast<std::string>(object)};
    if (PyFloat_Check(object.ptr())) return {nb::cast<double>(object)};
    if (nb::isinstance<nb::dict>(object)) {
      std::map<std::string, Value> sorted;
      for (auto [key, item] : nb::borrow<nb::dict>(object)) {
        sorted.emplace(nb::cast<std::string>(key), value(item, depth + 1));
      }
      return {Value::Dict(sorted.begin(), sorted.end())};
    }
    if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
      Value::List list;
      for (nb::handle item : nb::borrow<nb::sequence>(object)) list.push_back(value(item, depth + 1));
      return {std::move(list)};
    }
    NodeRef node;
    if (nb::try_cast(object, node) && node.defined()) {
      const IntImm* imm = node.as<IntImm>();
      if (imm && imm->dtype.is_uint() && imm->value < 0) {
        fail(argument_error("schedule/argument", "an instruction cannot hold an integer beyond 64 bits",
                            "integers of instructions have a sign: they are below 2**63"));
      }
      if (imm) return {imm->value};
      if (const FloatImm* number = node.as<FloatImm>()) return {number->value};
      if (const StringImm* string = node.as<StringImm>()) return {string->value};
      return {node};
    }
    fail(argument_error("schedule/argument", "an instruction cannot hold a '" + class_name(object) + "'",
                        "it holds handles, numbers, strings, index maps, and lists and dicts of these"));
  }

  uint32_t number(nb::handle object) {
    if (object.is_none()) return LoopRV::kNone;
    if (nb::isinstance<PyLoop>(object)) return number_of(nb::cast<const PyLoop&>(object));
    if (nb::isinstance<PyBlock>(object)) return number_of(nb::cast<const PyBlock&>(object));
    if (nb::isinstance<PyExpr>(object)) return number_of(nb::cast<const PyExpr&>(object));
    fail(argument_error("schedule/argument", "an instruction gives handles, not a '" + class_name(object) + "'",
                        "pass LoopRV, BlockRV and ExprRV objects"));
  }
  template <class RV>
  uint32_t number_of(const PyHandle<RV>& handle) {
    if (!handle.owner) return handle.rv.index;
    if (!owner_) owner_ = handle.owner;
    return own(*owner_, handle, "Trace").index;
  }

  SchedulePtr& owner_;
};

std::string show(const PyInstruction& self) {
  SchedulePtr owner;
  return anonymous_python(StepReader(owner).read(self, {None{}}).instruction, self.outputs.size());
}

/// Compares identities. The operator == would read the values of sampled integers.
bool same_object(nb::handle a, nb::handle b) {
  if (nb::isinstance<PyExpr>(a)) {
    return nb::isinstance<PyExpr>(b) && same_handle(nb::cast<const PyExpr&>(a), nb::cast<const PyExpr&>(b));
  }
  if (!nb::isinstance<nb::list>(a)) return !nb::isinstance<PyExpr>(b) && a.equal(b);
  if (!nb::isinstance<nb::list>(b) || nb::len(a) != nb::len(b)) return false;
  for (size_t i = 0; i < nb::len(a); ++i) {
    if (!same_object(a[i], b[i])) return false;
  }
  return true;
}

bool is_same_step(const PyInstruction& self, nb::handle other) {
  if (!nb::isinstance<PyInstruction>(other)) return false;
  const auto& that = nb::cast<const PyInstruction&>(other);
  return self.kind == that.kind && same_object(self.outputs, that.outputs) && same_object(self.inputs, that.inputs) &&
         same_object(self.attrs, that.attrs);
}

PyKind find_instruction_kind(const std::string& name) {
  const KindInfo* info = find_kind(name);
  if (!info) {
    std::vector<std::string> known;
    for (const KindInfo& each : all_kinds()) known.emplace_back(each.kind);
    const std::string meant = closest_name(name, known);
    throw nb::attribute_error(
        ("there is no instruction '" + name + "'" + (meant.empty() ? "" : "; did you mean '" + meant + "'?")).c_str());
  }
  return {info};
}

void bind_instruction(nb::module_& m) {
  nb::class_<PyKind>(m, "InstructionKind", "What an instruction does: the name of a method of Schedule in traces.")
      .def_static("get", &find_instruction_kind, "name"_a, "The kind of that name, 'Split' for split().")
      .def_prop_ro(
          "name", [](const PyKind& self) { return std::string(self.info->kind); }, "As in traces.")
      .def_prop_ro(
          "is_pure", [](const PyKind& self) { return self.info->family != Family::kTransform; },
          "Whether it leaves the program as it is, so that a trace may do without it.")
      .def_prop_ro(
          "is_on_iterations", [](const PyKind& self) { return is_on_iterations(*self.info); },
          "Whether it acts on iterations over sparse axes, which loops and blocks replace later.")
      .def(
          "same_as", [](const PyKind& self, const PyKind& other) { return self.info == other.info; }, "other"_a,
          "Whether it is the same kind.")
      .def(
          "__eq__",
          [](const PyKind& self, nb::handle other) {
            return nb::isinstance<PyKind>(other) && nb::cast<const PyKind&>(other).info == self.info;
          },
          nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const PyKind& self) { return std::hash<std::string_view>()(self.info->kind); })
      .def("__repr__", [](const PyKind& self) { return "InstructionKind(" + std::string(self.info->kind) + ")"; });
  auto list = [](const char* type) { return nb::sig(type); };
  nb::class_<PyInstruction>(m, "Instruction", "One step of a trace, without its decision.")
      .def(
          "__init__",
          [](PyInstruction* self, const PyKind& kind, const nb::iterable& inputs, const nb::iterable& attrs,
             const nb::iterable& outputs) {
            new (self) PyInstruction{kind.info, nb::list(inputs), nb::list(attrs), nb::list(outputs)};
          },
          "kind"_a, "inputs"_a, "attrs"_a, "outputs"_a,
          "Make an instruction without a schedule.\n\nArgs:\n"
          "    kind: what it does.\n"
          "    inputs: handles and values, in the order of the method's parameters, lists of loops flattened.\n"
          "    attrs: the other parameters.\n"
          "    outputs: handles for what it gives; None for none.",
          list("def __init__(self, kind: InstructionKind, inputs: Sequence[object], attrs: Sequence[object], "
               "outputs: Sequence[object]) -> None"))
      .def_prop_ro(
          "kind", [](const PyInstruction& self) { return PyKind{self.kind}; }, "What it does.")
      .def_ro("inputs", &PyInstruction::inputs, "Handles and values.", list("def inputs(self) -> list[Any]"))
      .def_ro("attrs", &PyInstruction::attrs, "The other parameters.", list("def attrs(self) -> list[Any]"))
      .def_ro("outputs", &PyInstruction::outputs, "Handles of what it gives.", list("def outputs(self) -> list[Any]"))
      .def("same_as", &is_same_step, "other"_a, "Whether it is the same step.")
      .def("__eq__", &is_same_step, nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__",
           [](const PyInstruction& self) {
             return std::hash<std::string_view>()(self.kind->kind) * 31 + nb::len(self.outputs);
           })
      .def("__repr__", &show)
      .def("__str__", &show);
}

/// Returns the name of the loop or block of a handle, or "" if the trace is not attached to a schedule.
std::string name_of_handle(const PyTrace& self, uint32_t number) {
  if (!self.owner || number >= self.owner->schedule.state().num_handles()) return {};
  const Handle& handle = self.owner->schedule.state().handle(number);
  if (const auto* loop = std::get_if<Ref<Var>>(&handle.target)) return (*loop)->name_hint;
  if (const auto* block = std::get_if<Handle::BlockId>(&handle.target)) return block->name;
  return {};
}

/// So that handles of different traces that were read are different ones.
void give_own_numbers(PyTrace& self) {
  if (self.owner || self.own_numbers) return;
  uint32_t count = 0;
  for (const Step* step : self.trace.steps()) {
    for (uint32_t number : step->outputs) count = std::max(count, number == LoopRV::kNone ? 0 : number + 1);
  }
  self.trace = self.trace.shifted(own_numbers(count));
  self.own_numbers = true;
}

const Step& find_step(PyTrace& self, const PyInstruction& wanted, size_t* position) {
  give_own_numbers(self);
  for (*position = 0; *position < self.trace.size(); ++*position) {
    const Step& step = self.trace[*position];
    if (is_same_step(wanted, nb::cast(to_python(step, step.instruction, self.owner)))) return step;
  }
  fail(argument_error("trace/instruction", "the trace has no such instruction: " + show(wanted),
                      "take it from the trace's insts"));
}

PyTrace trimmed(const PyTrace& self, bool remove_postproc) {
  return {remove_postproc ? self.trace.without_postproc() : self.trace, self.owner, false, self.own_numbers};
}

void refuse_change(const PyTrace& self) {
  if (!self.of_schedule) return;
  fail(argument_error("trace/of-schedule", "this trace is the record of a schedule, which only its steps change",
                      "change a copy: Trace(trace.insts, trace.decisions)"));
}

PyTrace make_trace(const nb::iterable& insts, const nb::dict& decisions) {
  PyTrace result{{}, nullptr, false, true};
  for (nb::handle inst : insts) {
    if (!nb::isinstance<PyInstruction>(inst)) {
      fail(argument_error("schedule/argument", "a trace holds instructions, not a '" + class_name(inst) + "'",
                          "pass Instruction objects, such as those of another trace's insts"));
    }
    Value decision = decisions.contains(inst) ? decision_from_python(decisions[inst]) : Value{None{}};
    result.trace.append(StepReader(result.owner).read(nb::cast<const PyInstruction&>(inst), decision));
  }
  return result;
}

nb::list instructions(PyTrace& self) {
  give_own_numbers(self);
  nb::list result;
  for (const Step* step : self.trace.steps()) result.append(to_python(*step, step->instruction, self.owner));
  return result;
}

nb::dict decisions(PyTrace& self) {
  give_own_numbers(self);
  nb::dict result;
  for (const Step* step : self.trace.steps()) {
    Value decision = decision_of(step->instruction);
    if (decision.is_none()) continue;
    result[nb::cast(to_python(*step, step->instruction, self.owner))] = decision_to_python(decision);
  }
  return result;
}

PyTrace with_other_decision(PyTrace& self, const PyInstruction& inst, const nb::object& decision,
                            bool remove_postproc) {
  size_t position = 0;
  Value value = decision_from_python(decision);
  unwrap_status(check_decision(find_step(self, inst, &position), value));
  PyTrace result{unwrap(self.trace.with_decision(position, value)), self.owner, false, self.own_numbers};
  return trimmed(result, remove_postproc);
}

void apply_trace(PyTrace& self, const SchedulePtr& sch, bool remove_postproc, const nb::object& decision_provider,
                 bool fresh, const nb::object& decide) {
  PyTrace applied = trimmed(self, remove_postproc);
  ReplayOptions options;
  options.fresh = fresh;
  if (!decide.is_none()) {
    options.decide = [&](size_t sample, const Step&, const Instruction&) {
      return decision_from_python(decide(sample));
    };
  } else if (!decision_provider.is_none()) {
    give_own_numbers(applied);
    options.decide = [&](size_t, const Step& step, const Instruction& now) {
      PyInstruction there = to_python(step, now, sch);
      return decision_from_python(decision_provider(to_python(step, step.instruction, applied.owner), there.inputs,
                                                    there.attrs, decision_to_python(decision_of(step.instruction))));
    };
  }
  unwrap_in(*sch, replay(applied.trace, sch->schedule, options));
}

PyTrace trace_from_json(nb::handle json) {
  std::string text =
      PyUnicode_Check(json.ptr()) ? nb::cast<std::string>(json) : json_text(json, "trace/json", "a trace");
  return {unwrap(Trace::from_json(text))};
}

void bind_changes(nb::class_<PyTrace>& cls) {
  cls.def(
      "append",
      [](PyTrace& self, const PyInstruction& inst, const nb::object& decision) {
        refuse_change(self);
        give_own_numbers(self);
        self.trace.append(StepReader(self.owner).read(inst, decision_from_python(decision)));
      },
      "inst"_a, "decision"_a = nb::none(),
      "Add a step.\n\nArgs:\n    inst: the step.\n    decision: what it shall take.",
      nb::sig("def append(self, inst: Instruction, decision: int | Sequence[int] | None = None) -> None"));
  cls.def(
      "pop",
      [](PyTrace& self) -> nb::object {
        refuse_change(self);
        if (self.trace.size() == 0) return nb::none();
        nb::list all = instructions(self);
        self.trace.pop();
        return all[nb::len(all) - 1];
      },
      "Take the last step away.\n\nReturns:\n    The step; None when there is none.",
      nb::sig("def pop(self) -> Instruction | None"));
  cls.def("with_decision", &with_other_decision, "inst"_a, "decision"_a.none(), "remove_postproc"_a = false,
          "The trace with another decision.\n\nArgs:\n    inst: a sampling step of the trace.\n"
          "    decision: what it shall take; None samples. Of a trace that a schedule has recorded it has to fit.\n"
          "    remove_postproc: stop before enter_postproc().",
          nb::sig("def with_decision(self, inst: Instruction, decision: int | Sequence[int] | None, "
                  "remove_postproc: bool = False) -> Trace"));
  cls.def(
      "simplified",
      [](const PyTrace& self, bool remove_postproc) {
        PyTrace result = trimmed(self, remove_postproc);
        result.trace = result.trace.simplified();
        return result;
      },
      "remove_postproc"_a = false,
      "The trace without lookups and sampling steps whose results nothing uses.\n\nArgs:\n"
      "    remove_postproc: stop before enter_postproc().");
}

void bind_show(nb::class_<PyTrace>& cls) {
  cls.def(
      "show",
      [](nb::handle self, const std::optional<std::string>& style, std::optional<bool> black_format) {
        nb::module_::import_("tilewright.script.display")
            .attr("print_script")(self.attr("__str__")(), style, black_format);
      },
      "style"_a = nb::none(), "black_format"_a = nb::none(),
      "Print the trace, colored where a program would be.\n\nArgs:\n"
      "    style: as of a program's show().\n    black_format: as of a program's show().");
}

}  // namespace

TraceEdit edit_from_python(const SchedulePtr& self, size_t step, nb::handle instead) {
  if (instead.is_none()) return {step, std::nullopt};
  if (nb::isinstance<PyInstruction>(instead)) {
    SchedulePtr owner = self;
    return {step, StepReader(owner).read(nb::cast<const PyInstruction&>(instead), {None{}}).instruction};
  }
  Value decision = decision_from_python(instead);
  const Trace& trace = self->schedule.trace();
  if (step >= trace.size()) return {step, std::nullopt};  // refused as any other step
  return {step, unwrap(with_decision(trace[step].instruction, decision))};
}

const Trace& trace_from_python(nb::handle trace) { return nb::cast<const PyTrace&>(trace).trace; }

void bind_trace(nb::module_& m) {
  bind_instruction(m);
  nb::class_<PyTrace> cls(m, "Trace",
                          "The steps that lead from an original program to a scheduled one, with their decisions. That "
                          "of a schedule is what was done so far, and stays as it is.");
  cls.def(
      "__init__",
      [](PyTrace* self, const nb::iterable& insts, const nb::dict& decisions) {
        new (self) PyTrace(make_trace(insts, decisions));
      },
      "insts"_a, "decisions"_a = nb::dict(),
      "Make a trace without a schedule.\n\nArgs:\n    insts: the steps.\n    decisions: what sampling steps shall "
      "take.",
      nb::sig("def __init__(self, insts: Sequence[Instruction], "
              "decisions: Mapping[Instruction, int | Sequence[int]] = {}) -> None"));
  cls.def("__len__", [](const PyTrace& self) { return self.trace.size(); });
  cls.def("__str__", [](nb::handle self) {
    nb::object wording = present_wording();
    if (!wording.is_none()) return nb::cast<std::string>(wording.attr("trace")(self));
    const auto& trace = nb::cast<const PyTrace&>(self);
    return trace.trace.script([&](uint32_t number) { return name_of_handle(trace, number); });
  });
  cls.def("__repr__", [](const PyTrace& self) {
    return "<Trace of " + std::to_string(self.trace.size()) + (self.trace.size() == 1 ? " step>" : " steps>");
  });
  cls.def("__reduce__", [](const nb::object& self) {
    return nb::make_tuple(nb::module_::import_("tilewright.schedule").attr("trace_from_json"),
                          nb::make_tuple(self.attr("as_json")()));
  });
  cls.def_prop_ro("insts", &instructions, "The steps.", nb::sig("def insts(self) -> list[Instruction]"));
  cls.def_prop_ro(
      "stated",
      [](const PyTrace& self) {
        nb::dict result;
        std::vector<const Step*> steps = self.trace.steps();
        for (size_t i : indices_of(steps)) {
          if (!steps[i]->stated.empty()) result[nb::int_(i)] = nb::str(steps[i]->stated.c_str());
        }
        return result;
      },
      "What the user says and nothing proves, by the position of the step that rests on it; of traces that a schedule "
      "has run.",
      nb::sig("def stated(self) -> dict[int, str]"));
  cls.def_prop_ro("decisions", &decisions, "The decisions of sampling steps, by step, in order.",
                  nb::sig("def decisions(self) -> dict[Instruction, int | list[int]]"));
  cls.def(
      "get_decision",
      [](PyTrace& self, const PyInstruction& inst) {
        size_t position = 0;
        return decision_to_python(decision_of(find_step(self, inst, &position).instruction));
      },
      "inst"_a, "The decision of a step; None where it samples nothing.",
      nb::sig("def get_decision(self, inst: Instruction) -> int | list[int] | None"));
  cls.def(
      "as_python",
      [](const PyTrace& self, bool remove_postproc) { return trimmed(self, remove_postproc).trace.as_python(); },
      "remove_postproc"_a = false,
      "One line of Python per step.\n\nArgs:\n    remove_postproc: stop before enter_postproc().");
  cls.def(
      "as_json",
      [](const PyTrace& self, bool remove_postproc) {
        return json_loads(trimmed(self, remove_postproc).trace.as_json());
      },
      "remove_postproc"_a = false,
      "The trace in TVM's JSON form, as nested lists.\n\nArgs:\n"
      "    remove_postproc: stop before enter_postproc().",
      nb::sig("def as_json(self, remove_postproc: bool = False) -> list[object]"));
  cls.def_static("from_json", &trace_from_json, "json"_a, "The trace that as_json() gave, or its text.",
                 nb::sig("def from_json(json: object) -> Trace"));
  cls.def_static(
      "apply_json_to_schedule",
      [](nb::handle json_obj, const SchedulePtr& sch) {
        PyTrace trace = trace_from_json(json_obj);
        apply_trace(trace, sch, false, nb::none(), false, nb::none());
      },
      "json_obj"_a, "sch"_a, "Apply all steps of a trace in JSON form to a schedule.",
      nb::sig("def apply_json_to_schedule(json_obj: object, sch: Schedule) -> None"));
  cls.def(
      "apply_to_schedule", &apply_trace, "sch"_a, "remove_postproc"_a = false, "decision_provider"_a = nb::none(),
      nb::kw_only(), "fresh"_a = false, "decide"_a = nb::none(),
      "Apply the steps to a schedule.\n\nArgs:\n"
      "    sch: a schedule of the program that the trace was recorded on, or of one with the same names.\n"
      "    remove_postproc: stop before enter_postproc().\n"
      "    decision_provider: called for each sampling step with the instruction, its inputs and attributes in that "
      "schedule, and its decision; gives the decision to take.\n"
      "    fresh: sample all decisions anew, from the random stream of the schedule.\n"
      "    decide: called with the number of each sampling step; gives the decision to take, or None.",
      nb::sig("def apply_to_schedule(self, sch: Schedule, remove_postproc: bool = False, "
              "decision_provider: Callable[[Instruction, list[Any], list[Any], int | list[int] | None], "
              "int | Sequence[int] | None] | None = None, *, fresh: bool = False, "
              "decide: Callable[[int], int | Sequence[int] | None] | None = None) -> None"));
  bind_changes(cls);
  bind_show(cls);
}

}  // namespace tilewright::python
