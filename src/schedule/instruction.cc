#include "schedule/instruction.h"

#include <algorithm>
#include <array>

#include "schedule/field_traits.h"
#include "schedule/state.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

template <class R>
constexpr bool is_vector = false;
template <class R>
constexpr bool is_vector<std::vector<R>> = true;

template <class R>
std::string return_type() {
  if constexpr (std::is_same_v<R, None>) return "None";
  if constexpr (std::is_same_v<R, LoopRV>) return "LoopRV";
  if constexpr (std::is_same_v<R, BlockRV>) return "BlockRV";
  if constexpr (std::is_same_v<R, ExprRV>) return "ExprRV";
  if constexpr (std::is_same_v<R, std::vector<LoopRV>>) return "list[LoopRV]";
  if constexpr (std::is_same_v<R, std::vector<BlockRV>>) return "list[BlockRV]";
  return "list[ExprRV | None]";
}

template <class R>
constexpr HandleKind kind_given() {
  if constexpr (is_vector<R>) {
    return kind_given<typename R::value_type>();
  } else if constexpr (std::is_same_v<R, LoopRV>) {
    return HandleKind::kLoop;
  } else if constexpr (std::is_same_v<R, BlockRV>) {
    return HandleKind::kBlock;
  } else {
    return HandleKind::kExpr;
  }
}

template <class I>
std::vector<Value> read_values(const Instruction& instruction) {
  std::vector<Value> result;
  for_each_field(*instruction.as<I>(),
                 [&]<class F>(std::string_view, const F& field) { result.push_back(FieldTraits<F>::to(field)); });
  return result;
}

/// "a list of loops": what stands in a list, where that is of one kind.
std::string kind_of_all(const Value& value) {
  const auto* list = value.as<Value::List>();
  if (!list || list->empty()) return value.kind();
  std::string kind = list->front().kind();
  bool alike = all_of(*list, [&](const Value& item) { return item.kind() == kind; });
  size_t article = kind.find(' ');
  if (!alike || article == std::string::npos) return value.kind();
  return "a list of " + kind.substr(article + 1) + "s";
}

Diagnostic bad_argument(const KindInfo& info, const Param& param, const Value* got) {
  std::string call = std::string(info.method) + "()";
  std::string name = "'" + std::string(param.name) + "'";
  if (!got) {
    return argument_error("schedule/argument", call + " needs the argument " + name,
                          "its signature is " + info.signature());
  }
  std::string hint = "its signature is " + info.signature();
  if (param.type.starts_with("Sequence[") && !got->as<Value::List>()) {
    std::string item = "...";
    if (const auto* number = got->as<int64_t>()) item = "None, " + std::to_string(*number);
    if (param.type.find("None") == std::string::npos) item = item.substr(item.rfind(' ') + 1);
    hint = "write a list, " + std::string(param.name) + "=[" + item + "]; " + hint;
  }
  return argument_error("schedule/argument",
                        call + ": the argument " + name + " takes " + param.type + ", not " + kind_of_all(*got),
                        std::move(hint));
}

template <class I>
Result<Instruction> build_from_values(const KindInfo& info, std::span<const std::optional<Value>> values) {
  I result;
  size_t at = 0;
  std::optional<Diagnostic> problem;
  for_each_field(result, [&]<class F>(std::string_view, F& field) {
    const Param& param = info.params[at];
    const std::optional<Value>& value = values[at++];
    if (problem) return;
    if (!value) {
      if (param.required) problem = bad_argument(info, param, nullptr);
    } else if (!FieldTraits<F>::from(*value, field) && (param.required || !value->is_none())) {
      problem = bad_argument(info, param, &*value);
    }
  });
  if (problem) return std::move(*problem);
  return Instruction(std::move(result));
}

template <class I>
Result<Plan> plan_for(const State& state, const Instruction& instruction) {
  return plan(state, *instruction.as<I>());
}

template <class I>
Value read_decision(const Instruction& instruction) {
  if constexpr (requires(const I& inst) { inst.decision; }) {
    const auto& decision = instruction.as<I>()->decision;
    return FieldTraits<std::remove_cvref_t<decltype(decision)>>::to(decision);
  }
  return {None{}};
}

template <class I>
std::optional<Instruction> put_decision(const Instruction& instruction, const Value& decision) {
  I result = *instruction.as<I>();
  bool fits = decision.is_none();
  if constexpr (requires { result.decision; }) {
    fits = FieldTraits<std::remove_cvref_t<decltype(result.decision)>>::from(decision, result.decision);
  }
  return fits ? std::optional<Instruction>(std::move(result)) : std::nullopt;
}

/// Calls f(kind, number) for each handle in a field, whatever its type; numbers can be changed where the field can.
template <class Field, class F>
void visit_handles(Field& field, const F& f) {
  using T = std::remove_const_t<Field>;
  if constexpr (std::is_same_v<T, LoopRV>) {
    f(HandleKind::kLoop, field.index);
  } else if constexpr (std::is_same_v<T, BlockRV>) {
    f(HandleKind::kBlock, field.index);
  } else if constexpr (std::is_same_v<T, ExprRV>) {
    f(HandleKind::kExpr, field.index);
  } else if constexpr (std::is_same_v<T, Value>) {
    visit_handles(field.data, f);
  } else if constexpr (std::is_same_v<T, Value::Dict>) {
    for (auto& [key, item] : field) visit_handles(item, f);
  } else if constexpr (requires { std::variant_size<T>::value; }) {
    std::visit([&](auto& alternative) { visit_handles(alternative, f); }, field);
  } else if constexpr (is_vector<T>) {
    for (auto& item : field) visit_handles(item, f);
  } else if constexpr (requires { field.items; }) {
    visit_handles(field.items, f);
  } else if constexpr (requires { field.either; }) {
    visit_handles(field.either, f);
  }
}

template <class I>
void read_handles(const Instruction& instruction, const ReadHandle& f) {
  for_each_field(*instruction.as<I>(), [&](std::string_view, const auto& field) { visit_handles(field, f); });
}

template <class I>
Instruction change_handles(const Instruction& instruction, const ChangeHandle& f) {
  I result = *instruction.as<I>();
  for_each_field(result, [&](std::string_view, auto& field) { visit_handles(field, f); });
  return result;
}

/// Whether a word stands in a list of words.
constexpr bool names(std::string_view list, std::string_view word) {
  for (size_t at = list.find(word); at != std::string_view::npos; at = list.find(word, at + 1)) {
    bool begins = at == 0 || list[at - 1] == ' ';
    bool ends = at + word.size() == list.size() || list[at + word.size()] == ' ';
    if (begins && ends) return true;
  }
  return false;
}

template <class I>
KindInfo describe(std::string_view kind, std::string_view method) {
  KindInfo info{};
  info.kind = kind;
  info.method = method;
  info.family = Family::kTransform;
  if constexpr (requires { I::kFamily; }) info.family = I::kFamily;
  if constexpr (requires { I::kPositional; }) info.positional = I::kPositional;
  if constexpr (requires { I::kMayAssumeDeclarations; }) info.may_assume_declarations = I::kMayAssumeDeclarations;
  using R = typename I::Returns;
  info.returns = std::is_same_v<R, None> ? Shape::kNothing : is_vector<R> ? Shape::kMany : Shape::kOne;
  info.gives = kind_given<R>();
  info.return_type = return_type<R>();
  info.doc = I::kDoc;
  static_assert(::tilewright::detail::count_fields<I>() == I::Members::count, "a field is missing in Members");
  I defaults{};
  if constexpr (requires { defaults.decision; }) info.family = Family::kSample;
  int required = I::Members::count;
  if constexpr (requires { I::kRequired; }) required = I::kRequired;
  for_each_field(defaults, [&]<class F>(std::string_view name, const F& field) {
    Param param{};
    param.name = name;
    param.role = FieldTraits<F>::kRole;
    param.star = is_star<F>;
    param.flat = is_flat<F>;
    param.omit_empty = is_omit_empty<F>;
    param.touched = std::is_same_v<F, TouchedBuffer>;
    if constexpr (requires { I::kAmongInputs; }) {
      param.among_inputs = names(I::kAmongInputs, name);
      if (param.among_inputs) param.role = FieldRole::kInput;
      param.flat |= param.omit_empty;  // handles beyond what TVM records are further inputs
    }
    if constexpr (requires { I::kSide; }) param.side = name == I::kSide;
    if constexpr (requires { I::kOmitDefault; }) param.omit_default = name == I::kOmitDefault;
    param.required = static_cast<int>(info.params.size()) < required && !param.star;
    param.default_value = param.omit_empty ? Value{None{}} : FieldTraits<F>::to(field);
    param.type = FieldTraits<F>::type();
    param.takes_none = takes<F, None>;
    param.takes_blocks = takes<F, BlockRV>;
    param.takes_map = takes<F, IndexFunction>;
    info.params.push_back(std::move(param));
  });
  info.plan = &plan_for<I>;
  info.values = &read_values<I>;
  info.build = &build_from_values<I>;
  info.decision = &read_decision<I>;
  info.with_decision = &put_decision<I>;
  info.for_each_handle = &read_handles<I>;
  info.with_handles = &change_handles<I>;
  return info;
}

const std::vector<KindInfo>& table() {
  static const std::vector<KindInfo> kinds = {
#define X(kind, method) describe<kind>(#kind, #method),
#include "schedule/instructions.def"
#undef X
  };
  return kinds;
}

/// The numbers of the rows.
enum Row : size_t {
#define X(kind, method) k##kind,
#include "schedule/instructions.def"
#undef X
};
template <class I>
constexpr Row row_of = Row{};
#define X(kind, method) \
  template <>           \
  constexpr Row row_of<kind> = Row::k##kind;
#include "schedule/instructions.def"
#undef X

std::string python_default(const Value& value) {
  if (const bool* b = value.as<bool>()) return *b ? "True" : "False";
  if (const int64_t* i = value.as<int64_t>()) return std::to_string(*i);
  if (const std::string* s = value.as<std::string>()) return s->empty() ? "None" : '"' + *s + '"';
  return "None";
}

}  // namespace

std::string Value::kind() const {
  static constexpr std::array names = {"None",    "a bool",          "an integer", "a float", "a string", "a loop",
                                       "a block", "a sampled value", "a list",     "a dict",  "a node"};
  if (const auto* node = as<NodeRef>()) return node->defined() ? "a " + kind_name(node->kind()) : "None";
  return names[data.index()];
}

std::string KindInfo::signature() const {
  std::string text = "def " + std::string(method) + "(self";
  for (const Param& param : params) {
    text += ", ";
    if (param.star) text += "*";
    text += std::string(param.name) + ": " + param.type;
    if (param.required || param.star) continue;
    std::string standard = python_default(param.default_value);
    if (standard == "None" && !param.takes_none) text += " | None";
    text += " = " + standard;
  }
  return text + ") -> " + return_type;
}

template <class I>
const KindInfo& kind_of() {
  return table()[row_of<I>];
}
#define X(kind, method) template const KindInfo& kind_of<kind>();
#include "schedule/instructions.def"
#undef X

Result<Plan> plan(const State& state, const Instruction& instruction) {
  return instruction.info().plan(state, instruction);
}

std::span<const KindInfo> all_kinds() { return table(); }

const KindInfo* find_kind(std::string_view kind) {
  for (const KindInfo& info : table()) {
    if (info.kind == kind) return &info;
  }
  return nullptr;
}

std::vector<Value> values_of(const Instruction& instruction) { return kind_info(instruction).values(instruction); }

namespace {

Value side_number(const std::string& side) { return {static_cast<int64_t>(side == "write")}; }
Value side_of(int64_t number) { return {std::string(number == 1 ? "write" : "read")}; }
bool is_side_number(const Value& value) {
  const int64_t* number = value.as<int64_t>();
  return number && (*number == 0 || *number == 1);
}

}  // namespace

RecordedParts parts_of(const Instruction& instruction) {
  const KindInfo& info = kind_info(instruction);
  std::vector<Value> values = values_of(instruction);
  RecordedParts parts;
  for (size_t i : indices_of(values)) {
    const Param& param = info.params[i];
    if (param.role == FieldRole::kDecision || (param.omit_default && values[i] == param.default_value)) continue;
    std::vector<Value>& list = param.role == FieldRole::kAttr ? parts.attrs : parts.inputs;
    const Value::List* items = values[i].as<Value::List>();
    const std::string* text = values[i].as<std::string>();
    if (param.flat) {
      append_range(list, *items);
    } else if (param.touched && items) {
      list.push_back((*items)[1]);
      list.push_back(side_number(*(*items)[0].as<std::string>()));
    } else if (param.side && text) {
      list.push_back(side_number(*text));
    } else {
      list.push_back(std::move(values[i]));
    }
  }
  return parts;
}

Result<Instruction> from_parts(const KindInfo& info, const RecordedParts& parts, const Value& decision) {
  std::vector<std::optional<Value>> values;
  auto input = parts.inputs.begin(), attr = parts.attrs.begin();
  for (const Param& param : info.params) {
    std::optional<Value>& value = values.emplace_back();
    if (param.role == FieldRole::kDecision) {
      value = decision;
      continue;
    }
    // Older records have all constants among the attributes, sides as texts, and lists of handles as they are.
    bool is_list = input != parts.inputs.end() && input->as<Value::List>() != nullptr;
    if (param.flat) {
      value = param.omit_empty && is_list ? *input : Value{Value::List(input, parts.inputs.end())};
      input = parts.inputs.end();
      continue;
    }
    bool among_inputs = param.role == FieldRole::kInput && input != parts.inputs.end() && !(param.takes_map && is_list);
    if (!among_inputs && attr == parts.attrs.end()) continue;
    if (!among_inputs && param.role == FieldRole::kInput && !param.among_inputs) continue;
    auto& next = among_inputs ? input : attr;
    value = *next++;
    bool more = next != (among_inputs ? parts.inputs.end() : parts.attrs.end());
    if (param.touched && value->as<int64_t>() && more && is_side_number(*next)) {
      value = Value{Value::List{side_of(*(next++)->as<int64_t>()), *value}};
    } else if (param.side && is_side_number(*value)) {
      value = side_of(*value->as<int64_t>());
    }
  }
  if (input != parts.inputs.end() || attr != parts.attrs.end()) {
    return argument_error("schedule/argument", "'" + std::string(info.kind) + "' has too many inputs or attributes",
                          "the method it records is " + info.signature());
  }
  return info.build(info, values);
}

Value decision_of(const Instruction& instruction) { return instruction.info().decision(instruction); }

Result<Instruction> with_decision(const Instruction& instruction, const Value& decision) {
  const KindInfo& info = instruction.info();
  std::optional<Instruction> result = info.with_decision(instruction, decision);
  if (result) return std::move(*result);
  return argument_error("schedule/decision",
                        std::string(info.method) + "() cannot take " + decision.kind() + " as its decision",
                        "trace.decisions shows what each step has taken");
}

void for_each_handle(const Instruction& instruction, const ReadHandle& f) {
  instruction.info().for_each_handle(instruction, f);
}

Instruction with_handles(const Instruction& instruction, const ChangeHandle& f) {
  return instruction.info().with_handles(instruction, f);
}

}  // namespace tilewright::schedule
