// Traces in TVM's JSON form: [[[kind, inputs, attrs, outputs], ...], [[step, decision], ...]]. Handles are the strings
// "b0", "l1", "v2"; a string constant among the inputs keeps its quotes, so that the two are distinct.
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "ir/build.h"
#include "ir/json.h"
#include "ir/object_graph.h"
#include "schedule/trace.h"
#include "support/json_nesting.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Value& value, bool is_input, const HandleNames& names) {
  struct Write {
    bool is_input;
    const HandleNames& names;
    Json operator()(None) const { return is_input ? Json("None") : Json(nullptr); }
    Json operator()(bool b) const { return b; }
    Json operator()(int64_t i) const { return i; }
    Json operator()(double d) const {
      if (std::isfinite(d)) return d;
      return tilewright::to_json(float_imm(DataType::float_(64), d));  // JSON has no number for it
    }
    Json operator()(const std::string& s) const { return is_input ? '"' + s + '"' : s; }
    Json operator()(LoopRV rv) const { return names.of(rv.index); }
    Json operator()(BlockRV rv) const { return names.of(rv.index); }
    Json operator()(ExprRV rv) const { return names.of(rv.index); }
    Json operator()(const NodeRef& node) const {
      bool written = node.is<IndexMap>() || (node.defined() && node.sort() == Sort::kExpr);
      if (!written) return Json(nullptr);
      // A node that TVM's layout cannot hold, such as a load in a padding value, is written in our own JSON.
      auto graph = to_object_graph(node);
      return Json(graph ? *graph : tilewright::to_json(node));
    }
    Json operator()(const Value::List& list) const {
      Json result = Json::array();
      for (const Value& item : list) result.push_back(to_json(item, is_input, names));
      return result;
    }
    Json operator()(const Value::Dict& dict) const {
      Json result = Json::object();
      for (const auto& [key, item] : dict) result[key] = to_json(item, is_input, names);
      return result;
    }
  };
  return std::visit(Write{is_input, names}, value.data);
}

/// Reads one trace; errors say which step and what was expected there.
class Reader {
 public:
  Result<Trace> read(const Json& root) {
    if (!root.is_array() || root.size() != 2 || !root[0].is_array() || !root[1].is_array()) {
      return bad("a trace is a list of two lists: instructions and decisions");
    }
    std::vector<Value> decisions(root[0].size(), Value{None{}});
    for (const Json& entry : root[1]) {
      bool fits = entry.is_array() && entry.size() == 2 && entry[0].is_number_unsigned() &&
                  entry[0].get<size_t>() < decisions.size();
      if (!fits) return bad("a decision is a pair of the number of an instruction and a value");
      TW_TRY(decision, constant(entry[1], false));
      decisions[entry[0].get<size_t>()] = std::move(decision);
    }
    Trace trace;
    for (step_ = 0; step_ < root[0].size(); ++step_) {
      TW_TRY(step, read_step(root[0][step_], decisions[step_]));
      trace.append(std::move(step));
    }
    return trace;
  }

 private:
  Diagnostic bad(const std::string& message) const {
    return schedule_error("trace/json",
                          "not a trace: " + message + (step_ ? " (instruction " + std::to_string(step_) + ")" : ""),
                          "traces are written by Trace.as_json()");
  }

  Result<Step> read_step(const Json& entry, const Value& decision) {
    if (!entry.is_array() || entry.size() != 4 || !entry[0].is_string() || !entry[1].is_array() ||
        !entry[2].is_array() || !entry[3].is_array()) {
      return bad("an instruction is a list of its kind, inputs, attributes and outputs");
    }
    std::string kind = entry[0].get<std::string>();
    const KindInfo* info = find_kind(kind == "Reindex" ? "ReIndex" : kind);  // spelling of older records
    if (!info) return bad("there is no instruction '" + kind + "'");
    RecordedParts parts;
    for (const Json& input : entry[1]) {
      TW_TRY(read, constant(input, true));
      parts.inputs.push_back(std::move(read));
    }
    for (const Json& attr : entry[2]) {
      TW_TRY(read, constant(attr, false));
      parts.attrs.push_back(std::move(read));
    }
    auto instruction = from_parts(*info, parts, decision);
    if (!instruction.ok()) return bad("'" + kind + "': " + instruction.error().message);
    Step step{std::move(*instruction), {}, nullptr};
    for (const Json& output : entry[3]) {
      if (!output.is_string()) return bad("outputs are names of handles");
      TW_TRY(number, define(output.get<std::string>()));
      step.outputs.push_back(number);
    }
    return step;
  }

  /// Names of other programs need not count from 0: the first name seen is handle 0.
  Result<uint32_t> define(const std::string& name) {
    if (name == "_") return LoopRV::kNone;
    if (!is_handle(name)) return bad("'" + name + "' is not the name of a handle");
    auto number = static_cast<uint32_t>(handles_.size());
    handles_[name] = number;
    return number;
  }
  static bool is_handle(const std::string& text) {
    return text.size() > 1 && std::string_view("blv").find(text[0]) != std::string_view::npos &&
           text.find_first_not_of("0123456789", 1) == std::string::npos;
  }

  Result<Value> constant(const Json& json, bool is_input, int depth = 0) {
    if (depth > kMaxNesting) return bad("lists and dicts nest deeper than " + std::to_string(kMaxNesting) + " levels");
    if (json.is_boolean()) return Value{json.get<bool>()};
    if (json.is_number_integer()) return Value{json.get<int64_t>()};
    if (json.is_number_float()) return Value{json.get<double>()};
    if (json.is_null()) return Value{None{}};
    if (json.is_array()) {
      Value::List list;
      for (const Json& item : json) {
        TW_TRY(read, constant(item, is_input, depth + 1));
        list.push_back(std::move(read));
      }
      return Value{std::move(list)};
    }
    if (json.is_object()) {
      Value::Dict dict;
      for (const auto& [key, item] : json.items()) {
        TW_TRY(read, constant(item, is_input, depth + 1));
        dict.emplace_back(key, std::move(read));
      }
      std::ranges::sort(dict, [](const auto& a, const auto& b) { return a.first < b.first; });
      return Value{std::move(dict)};
    }
    std::string text = json.get<std::string>();
    if (!is_input) return Value{std::move(text)};
    if (text == "None") return Value{None{}};
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"') return Value{text.substr(1, text.size() - 2)};
    if (text.starts_with('{')) {
      TW_TRY(node, tilewright::from_json(text));
      if (const FloatImm* number = node.as<FloatImm>()) return Value{number->value};
      return Value{node};
    }
    auto* found = find_value(handles_, text);
    if (!found) return bad("no earlier instruction gives '" + text + "'");
    if (text[0] == 'l') return Value{LoopRV{*found}};
    if (text[0] == 'b') return Value{BlockRV{*found}};
    return Value{ExprRV{*found}};
  }

  static constexpr int kMaxNesting = 64;
  std::map<std::string, uint32_t> handles_;
  size_t step_ = 0;
};

}  // namespace

std::string Trace::as_json() const {
  Json instructions = Json::array(), decisions = Json::array();
  HandleNames names;
  for (const Step* step : steps()) {
    RecordedParts parts = parts_of(step->instruction);
    Json inputs = Json::array(), attrs = Json::array();
    for (const Value& input : parts.inputs) inputs.push_back(to_json(input, true, names));
    for (const Value& attr : parts.attrs) attrs.push_back(to_json(attr, false, names));
    Value decision = decision_of(step->instruction);
    if (!decision.is_none()) {
      decisions.push_back(Json::array({instructions.size(), to_json(decision, false, names)}));
    }
    instructions.push_back(
        Json::array({std::string(kind_info(step->instruction).kind), inputs, attrs, names.define(*step)}));
  }
  return Json::array({instructions, decisions}).dump();
}

Result<Trace> Trace::from_json(std::string_view text) {
  if (nests_too_deep(text)) {
    return schedule_error("trace/json", "not a trace: lists or objects are nested too deep",
                          "traces are written by Trace.as_json()");
  }
  Json root = Json::parse(text, nullptr, false);
  if (root.is_discarded()) {
    return schedule_error("trace/json", "not a trace: the text is not JSON", "traces are written by Trace.as_json()");
  }
  return Reader().read(root);
}

}  // namespace tilewright::schedule
