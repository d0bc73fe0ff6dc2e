#include "schedule/trace.h"

#include <fmt/format.h>

#include <cctype>
#include <map>
#include <string_view>
#include <unordered_set>

#include "ir/build.h"
#include "schedule/primitives/enter_postproc.h"
#include "script/printer.h"
#include "script/printer_names.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

std::string quote(const std::string& text) {
  std::string result = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += static_cast<char>(c);
    } else if (c == '\n') {
      result += "\\n";
    } else if (c < 0x20) {
      result += fmt::format("\\x{:02x}", c);
    } else {
      result += static_cast<char>(c);
    }
  }
  return result + '"';
}

std::string python_float(double value) {
  if (value != value) return "float(\"nan\")";
  if (value - value != 0) return value > 0 ? "float(\"inf\")" : "float(\"-inf\")";
  std::string text = fmt::format("{}", value);  // the shortest text that gives this very double
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

/// An index map as its function, where that says all.
std::string python_node(const NodeRef& node) {
  if (!node.defined()) return "None";
  std::string text = script::print(node);
  constexpr std::string_view kCall = "T.index_map(";
  const IndexMap* map = node.as<IndexMap>();
  if (!map || map->inverse_index_map.defined() || !text.starts_with(kCall)) return text;
  return text.substr(kCall.size(), text.size() - kCall.size() - 1);
}

std::string python_value(const Value& value, const HandleNames& names) {
  struct Print {
    const HandleNames& names;
    std::string operator()(None) const { return "None"; }
    std::string operator()(bool b) const { return b ? "True" : "False"; }
    std::string operator()(int64_t i) const { return std::to_string(i); }
    std::string operator()(double d) const { return python_float(d); }
    std::string operator()(const std::string& s) const { return quote(s); }
    std::string operator()(LoopRV rv) const { return names.of(rv.index); }
    std::string operator()(BlockRV rv) const { return names.of(rv.index); }
    std::string operator()(ExprRV rv) const { return names.of(rv.index); }
    std::string operator()(const NodeRef& node) const { return python_node(node); }
    std::string operator()(const Value::List& list) const {
      std::string text;
      for (const Value& item : list) text += (text.empty() ? "" : ", ") + python_value(item, names);
      return "[" + text + "]";
    }
    std::string operator()(const Value::Dict& dict) const {
      std::string text;
      for (const auto& [key, item] : dict)
        text += (text.empty() ? "" : ", ") + quote(key) + ": " + python_value(item, names);
      return "{" + text + "}";
    }
  };
  return std::visit(Print{names}, value.data);
}

bool is_empty_list(const Value& value) { return value.as<Value::List>() && value.as<Value::List>()->empty(); }

/// Whether the argument names the function "main", which get_block() searches by default.
bool is_usual_function(const Param& param, const Value& value) {
  const std::string* name = param.name == "func_name" ? value.as<std::string>() : nullptr;
  return name && *name == "main";
}

/// `brief`: what is required by position, of the rest what is no default.
std::string python_call(const Instruction& instruction, const HandleNames& names, bool brief = false) {
  const KindInfo& info = kind_info(instruction);
  std::vector<Value> values = values_of(instruction);
  std::string args;
  auto add = [&](const std::string& text) { args += (args.empty() ? "" : ", ") + text; };
  for (size_t i : indices_of(values)) {
    const Param& param = info.params[i];
    if (param.star) {
      for (const Value& item : *values[i].as<Value::List>()) add(python_value(item, names));
    } else if (param.role == FieldRole::kDecision ? values[i].is_none()
                                                  : (param.omit_empty && is_empty_list(values[i])) ||
                                                        (param.omit_default && values[i] == param.default_value)) {
      continue;
    } else if (brief && !param.required && (values[i] == param.default_value || is_usual_function(param, values[i]))) {
      continue;
    } else if (info.positional || (brief && param.required)) {
      add(python_value(values[i], names));
    } else {
      add(std::string(param.name) + "=" + python_value(values[i], names));
    }
  }
  return "sch." + std::string(info.method) + "(" + args + ")";
}

std::string python_line(const std::vector<std::string>& outputs, Shape returns, const std::string& call) {
  std::string text;
  for (const std::string& name : outputs) text += (text.empty() ? "" : ", ") + name;
  // A list of one is unpacked by a trailing comma; an empty one is not assigned.
  if (returns == Shape::kMany && outputs.size() == 1) text += ",";
  return (text.empty() ? "" : text + " = ") + call;
}

}  // namespace

std::vector<std::string> HandleNames::define(const Step& step) {
  HandleKind kind = kind_info(step.instruction).gives;
  char letter = kind == HandleKind::kLoop ? 'l' : kind == HandleKind::kBlock ? 'b' : 'v';
  std::vector<std::string> result;
  for (uint32_t number : step.outputs) {
    if (number == LoopRV::kNone) {
      result.push_back("_");
    } else {
      result.push_back(invent(number, letter));
      names_[number] = result.back();
    }
  }
  return result;
}

std::string HandleNames::invent(uint32_t number, char letter) {
  std::string known = name_of_ ? name_of_(number) : std::string();
  if (known.empty()) return letter + std::to_string(names_.size());
  for (char& c : known) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  if (std::isdigit(static_cast<unsigned char>(known[0]))) known.insert(0, 1, letter);
  if (!script::is_identifier(known)) known += '_';
  std::string name = known;
  for (int again = 1; !taken_.insert(name).second; ++again) name = known + "_" + std::to_string(again);
  return name;
}

std::string HandleNames::of(uint32_t number) const { return find_value_or(names_, number, "_"); }

std::string anonymous_python(const Instruction& instruction, size_t num_outputs) {
  return python_line(std::vector<std::string>(num_outputs, "_"), kind_info(instruction).returns,
                     python_call(instruction, {}));
}

std::vector<std::string> Trace::as_python() const {
  std::vector<std::string> lines;
  HandleNames names;
  for (const Step* step : steps()) {
    std::string call = python_call(step->instruction, names);
    lines.push_back(python_line(names.define(*step), kind_info(step->instruction).returns, call));
  }
  return lines;
}

std::string Trace::script(const std::function<std::string(uint32_t)>& name_of) const {
  std::string text;
  if (steps_.size() == 0) text += "\n    pass";
  HandleNames names(name_of);
  for (const Step* step : steps()) {
    std::string call = python_call(step->instruction, names, true);
    text += "\n    " + python_line(names.define(*step), kind_info(step->instruction).returns, call);
    if (!step->stated.empty()) text += "  # stated, not proved: " + step->stated;
  }
  std::string imports = "import tilewright as tw\n";
  if (text.find("T.") != std::string::npos) imports += "from tilewright.script import tir as T\n";
  return imports + "\ndef apply_trace(sch: tw.Schedule) -> None:" + text;
}

Trace Trace::simplified() const {
  std::vector<const Step*> all = steps();
  std::vector<bool> keep(all.size());
  std::unordered_set<uint32_t> used;
  for (size_t i = all.size(); i-- > 0;) {
    const Step& step = *all[i];
    bool pure = kind_info(step.instruction).family != Family::kTransform;
    bool needed = !pure || any_of(step.outputs, [&](uint32_t number) { return used.count(number) != 0; });
    keep[i] = needed;
    if (!needed) continue;
    for_each_handle(step.instruction, [&](HandleKind, uint32_t number) { used.insert(number); });
  }
  Trace result;
  for (size_t i = 0; i < all.size(); ++i) {
    // Drop the state: it belongs to a schedule whose handles have other numbers.
    if (keep[i]) result.append({all[i]->instruction, all[i]->outputs, nullptr, all[i]->stated});
  }
  return result;
}

Trace Trace::without_postproc() const {
  std::vector<const Step*> all = steps();
  auto marker = find_if(all, [](const Step* step) { return step->instruction.is<EnterPostproc>(); });
  return prefix(static_cast<size_t>(marker - all.begin()));
}

Trace Trace::shifted(uint32_t by) const {
  Trace result;
  for (const Step* step : steps()) {
    Step copy{step->instruction, step->outputs, nullptr, step->stated};
    copy.instruction = with_handles(step->instruction, [&](HandleKind, uint32_t& number) { number += by; });
    for (uint32_t& number : copy.outputs) number += number == LoopRV::kNone ? 0 : by;
    result.append(std::move(copy));
  }
  return result;
}

std::vector<Value> Trace::decisions() const {
  std::vector<Value> result;
  for (const Step* step : steps()) {
    if (step->is_sampling()) result.push_back(decision_of(step->instruction));
  }
  return result;
}

std::vector<size_t> Trace::sampling_steps() const {
  std::vector<const Step*> all = steps();
  std::vector<size_t> result;
  for (size_t i : indices_of(all)) {
    if (all[i]->is_sampling()) result.push_back(i);
  }
  return result;
}

Result<Trace> Trace::edited(const std::vector<TraceEdit>& edits) const {
  std::map<size_t, const TraceEdit*> by_step;
  for (const TraceEdit& edit : edits) {
    if (edit.step >= size() || !by_step.emplace(edit.step, &edit).second) {
      return argument_error("trace/step",
                            edit.step < size() ? "step " + std::to_string(edit.step) + " is edited twice"
                                               : "the trace has no step of that number",
                            "it has " + std::to_string(size()) + " steps, numbered from 0; each is edited once");
    }
  }
  if (by_step.empty()) return *this;
  std::vector<const Step*> all = steps();
  Trace result = prefix(by_step.begin()->first);
  for (size_t i = result.size(); i < all.size(); ++i) {
    auto* edit = find_value(by_step, i);
    if (!edit) {
      result.append({all[i]->instruction, all[i]->outputs, nullptr, all[i]->stated});
    } else if ((*edit)->instead) {
      result.append({*(*edit)->instead, all[i]->outputs, nullptr});
    }
  }
  return result;
}

Result<Trace> Trace::with_decision(size_t step, const Value& decision) const {
  if (step >= size()) return edited({{step, std::nullopt}});
  TW_TRY(changed, schedule::with_decision((*this)[step].instruction, decision));
  return edited({{step, std::move(changed)}});
}

}  // namespace tilewright::schedule
