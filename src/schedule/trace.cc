#include "schedule/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "analysis/brief.h"

namespace tilewright::schedule {
namespace {

/// What a step gives, by the kind of its output and the number of the row.
std::string output_name(const KindInfo& info, uint32_t number) {
  if (number == LoopRV::kNone) return "_";
  char kind = info.return_type.find("Loop") != std::string::npos    ? 'l'
              : info.return_type.find("Block") != std::string::npos ? 'b'
                                                                    : 'v';
  return kind + std::to_string(number);
}

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

std::string python_lambda(const IndexMap& map) {
  std::string params, results;
  for (const Def<Var>& v : map.initial_indices) params += (params.empty() ? "" : ", ") + v->name_hint;
  for (const Expr& e : map.final_indices) results += analysis::brief(e) + ", ";
  if (map.final_indices.size() > 1) results.resize(results.size() - 2);
  return "lambda " + params + ": (" + results + ")";
}

std::string python_value(const Value& value) {
  struct Print {
    std::string operator()(None) const { return "None"; }
    std::string operator()(bool b) const { return b ? "True" : "False"; }
    std::string operator()(int64_t i) const { return std::to_string(i); }
    std::string operator()(double d) const { return python_float(d); }
    std::string operator()(const std::string& s) const { return quote(s); }
    std::string operator()(LoopRV rv) const { return "l" + std::to_string(rv.index); }
    std::string operator()(BlockRV rv) const { return "b" + std::to_string(rv.index); }
    std::string operator()(ExprRV rv) const { return "v" + std::to_string(rv.index); }
    std::string operator()(const NodeRef& node) const {
      if (const IndexMap* map = node.as<IndexMap>()) return python_lambda(*map);
      return node.defined() ? std::string(kind_name(node.kind())) : "None";
    }
    std::string operator()(const Value::List& list) const {
      std::string text;
      for (const Value& item : list) text += (text.empty() ? "" : ", ") + python_value(item);
      return "[" + text + "]";
    }
    std::string operator()(const Value::Dict& dict) const {
      std::string text;
      for (const auto& [key, item] : dict) text += (text.empty() ? "" : ", ") + quote(key) + ": " + python_value(item);
      return "{" + text + "}";
    }
  };
  return std::visit(Print{}, value.data);
}

bool is_empty_list(const Value& value) { return value.as<Value::List>() && value.as<Value::List>()->empty(); }

std::string python_call(const Step& step) {
  const KindInfo& info = kind_info(step.instruction);
  std::vector<Value> values = values_of(step.instruction);
  std::string args;
  auto add = [&](const std::string& text) { args += (args.empty() ? "" : ", ") + text; };
  for (size_t i = 0; i < values.size(); ++i) {
    const Param& param = info.params[i];
    if (param.star) {
      for (const Value& item : *values[i].as<Value::List>()) add(python_value(item));
    } else if (param.role == Role::kDecision ? values[i].is_none() : param.omit_empty && is_empty_list(values[i])) {
      continue;
    } else if (info.positional) {
      add(python_value(values[i]));
    } else {
      add(std::string(param.name) + "=" + python_value(values[i]));
    }
  }
  return "sch." + std::string(info.method) + "(" + args + ")";
}

}  // namespace

std::string handle_name(const Value& handle) { return python_value(handle); }

std::vector<std::string> output_names(const Step& step) {
  std::vector<std::string> names;
  for (uint32_t number : step.outputs) names.push_back(output_name(kind_info(step.instruction), number));
  return names;
}

std::vector<std::string> Trace::as_python() const {
  std::vector<std::string> lines;
  for (const Step* step : steps()) {
    const KindInfo& info = kind_info(step->instruction);
    std::string outputs;
    for (const std::string& name : output_names(*step)) outputs += (outputs.empty() ? "" : ", ") + name;
    if (info.returns == Shape::kMany) {
      // A list of one is unpacked by a trailing comma; an empty one is not assigned.
      if (step->outputs.size() == 1) outputs += ",";
    }
    lines.push_back((outputs.empty() ? "" : outputs + " = ") + python_call(*step));
  }
  return lines;
}

std::string Trace::script() const {
  std::string text = "import tilewright as tw\n\ndef apply_trace(sch: tw.Schedule) -> None:\n";
  std::vector<std::string> lines = as_python();
  if (lines.empty()) lines.push_back("pass");
  for (const std::string& line : lines) text += "    " + line + "\n";
  text.pop_back();
  return text;
}

Trace Trace::simplified() const {
  std::vector<const Step*> all = steps();
  std::vector<bool> keep(all.size());
  std::unordered_set<uint32_t> used;
  for (size_t i = all.size(); i-- > 0;) {
    const Step& step = *all[i];
    bool pure = kind_info(step.instruction).family != Family::kTransform;
    bool needed = !pure || std::any_of(step.outputs.begin(), step.outputs.end(),
                                       [&](uint32_t number) { return used.count(number) != 0; });
    keep[i] = needed;
    if (!needed) continue;
    Instruction instruction = step.instruction;
    for_each_handle(instruction, [&](HandleKind, uint32_t& number) { used.insert(number); });
  }
  Trace result;
  for (size_t i = 0; i < all.size(); ++i) {
    // Without its state: it belongs to a schedule whose handles have other numbers.
    if (keep[i]) result.append({all[i]->instruction, all[i]->outputs, nullptr});
  }
  return result;
}

std::vector<Value> Trace::decisions() const {
  std::vector<Value> result;
  for (const Step* step : steps()) {
    if (kind_info(step->instruction).family == Family::kSample) result.push_back(decision_of(step->instruction));
  }
  return result;
}

}  // namespace tilewright::schedule
