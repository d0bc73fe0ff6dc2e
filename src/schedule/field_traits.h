// Conversions of the fields of an instruction to a Value and back, and their names in Python, by type.
#pragma once

#include "ir/json.h"
#include "schedule/instruction.h"
#include "schedule/instructions.h"
#include "support/ranges.h"

namespace tilewright::schedule {

/// Specialized per field type: role, type text, to(), from() (false when the value does not fit).
template <class T>
struct FieldTraits;

template <class T, FieldRole kRoleOf>
struct PlainField {
  static constexpr FieldRole kRole = kRoleOf;
  static Value to(const T& field) { return {field}; }
  static bool from(const Value& value, T& field) {
    const T* found = value.as<T>();
    if (found) field = *found;
    return found != nullptr;
  }
};
template <>
struct FieldTraits<LoopRV> : PlainField<LoopRV, FieldRole::kInput> {
  static std::string type() { return "LoopRV"; }
};
template <>
struct FieldTraits<BlockRV> : PlainField<BlockRV, FieldRole::kInput> {
  static std::string type() { return "BlockRV | str"; }
};
template <>
struct FieldTraits<ExprRV> : PlainField<ExprRV, FieldRole::kInput> {
  static std::string type() { return "ExprRV"; }
};
template <>
struct FieldTraits<int64_t> : PlainField<int64_t, FieldRole::kAttr> {
  static std::string type() { return "int"; }
};
template <>
struct FieldTraits<bool> : PlainField<bool, FieldRole::kAttr> {
  static std::string type() { return "bool"; }
  static bool from(const Value& value, bool& field) {
    if (const bool* b = value.as<bool>()) {
      field = *b;
    } else if (const int64_t* i = value.as<int64_t>(); i && (*i == 0 || *i == 1)) {
      field = *i == 1;  // other tools write flags as 0 and 1 in JSON
    } else {
      return false;
    }
    return true;
  }
};
template <>
struct FieldTraits<double> : PlainField<double, FieldRole::kAttr> {
  static std::string type() { return "float"; }
  static bool from(const Value& value, double& field) {
    if (const double* d = value.as<double>()) {
      field = *d;
    } else if (const int64_t* i = value.as<int64_t>()) {
      field = static_cast<double>(*i);
    } else {
      return false;
    }
    return true;
  }
};
template <>
struct FieldTraits<std::string> : PlainField<std::string, FieldRole::kAttr> {
  static std::string type() { return "str"; }
};
template <>
struct FieldTraits<Value> {
  static constexpr FieldRole kRole = FieldRole::kInput;
  static std::string type() { return "AnnotationValue"; }
  static Value to(const Value& field) { return field; }
  static bool from(const Value& value, Value& field) {
    field = value;
    return true;
  }
};
template <class... T>
struct FieldTraits<std::variant<T...>> {
  static constexpr FieldRole kRole = (std::is_same_v<T, std::string> || ...) ? FieldRole::kAttr : FieldRole::kInput;
  static std::string type() {
    if constexpr ((std::is_same_v<T, std::string> || ...)) return "int | str | Buffer";
    if constexpr ((std::is_same_v<T, None> || ...)) return "int | ExprRV | Expr | None";
    return "BlockRV | LoopRV | str";
  }
  static Value to(const std::variant<T...>& field) {
    return std::visit([](const auto& v) { return Value{v}; }, field);
  }
  static bool from(const Value& value, std::variant<T...>& field) { return (take<T>(value, field) || ...); }

 private:
  template <class A>
  static bool take(const Value& value, std::variant<T...>& field) {
    const A* found = value.as<A>();
    if (found) field = *found;
    return found != nullptr;
  }
};
template <class T>
struct ListField {
  static Value to(const std::vector<T>& items) {
    Value::List list;
    for (const T& item : items) list.push_back(FieldTraits<T>::to(item));
    return {std::move(list)};
  }
  static bool from(const Value& value, std::vector<T>& items) {
    const Value::List* list = value.as<Value::List>();
    if (!list) return false;
    items.assign(list->size(), T{});
    for (size_t i : indices_of(*list)) {
      T item{};
      if (!FieldTraits<T>::from((*list)[i], item)) return false;
      items[i] = std::move(item);
    }
    return true;
  }
};
template <>
struct FieldTraits<LoopOrBlocks> {
  static constexpr FieldRole kRole = FieldRole::kInput;
  static std::string type() { return "LoopRV | Sequence[BlockRV | str]"; }
  static Value to(const LoopOrBlocks& field) {
    if (const LoopRV* loop = std::get_if<LoopRV>(&field.either)) return {*loop};
    return ListField<BlockRV>::to(std::get<std::vector<BlockRV>>(field.either));
  }
  static bool from(const Value& value, LoopOrBlocks& field) {
    if (const LoopRV* loop = value.as<LoopRV>()) {
      field.either = *loop;
      return true;
    }
    return ListField<BlockRV>::from(value, field.either.emplace<std::vector<BlockRV>>());
  }
};
template <class T>
struct FieldTraits<std::vector<T>> : ListField<T> {
  static constexpr FieldRole kRole = FieldTraits<T>::kRole;
  static std::string type() { return "Sequence[" + FieldTraits<T>::type() + "]"; }
};
template <class Wrapper, class T>
struct WrappedList {
  static constexpr FieldRole kRole = FieldTraits<T>::kRole;
  static Value to(const Wrapper& field) { return ListField<T>::to(field.items); }
  static bool from(const Value& value, Wrapper& field) { return ListField<T>::from(value, field.items); }
};
template <class T>
struct FieldTraits<Star<T>> : WrappedList<Star<T>, T> {
  static std::string type() { return FieldTraits<T>::type(); }
};
template <class T>
struct FieldTraits<Flat<T>> : WrappedList<Flat<T>, T> {
  static std::string type() { return "Sequence[" + FieldTraits<T>::type() + "]"; }
};
template <class T>
struct FieldTraits<OmitEmpty<T>> : WrappedList<OmitEmpty<T>, T> {
  static std::string type() { return "Sequence[" + FieldTraits<T>::type() + "] | None"; }
  static bool from(const Value& value, OmitEmpty<T>& field) {
    if (!value.is_none()) return WrappedList<OmitEmpty<T>, T>::from(value, field);
    field.items.clear();
    return true;
  }
};
template <class T>
struct FieldTraits<Decision<T>> {
  static constexpr FieldRole kRole = FieldRole::kDecision;
  static std::string type() { return FieldTraits<T>::type() + " | None"; }
  static Value to(const Decision<T>& field) { return field.value ? FieldTraits<T>::to(*field.value) : Value{None{}}; }
  static bool from(const Value& value, Decision<T>& field) {
    field.value.reset();
    if (value.is_none()) return true;
    T item{};
    if (!FieldTraits<T>::from(value, item)) return false;
    field.value.emplace(std::move(item));
    return true;
  }
};

template <>
struct FieldTraits<TouchedBuffer> {
  static constexpr FieldRole kRole = FieldRole::kAttr;
  static std::string type() { return "tuple[str, int] | str | Buffer"; }
  static Value to(const TouchedBuffer& field) {
    Value index = FieldTraits<BufferIndex>::to(field.index);
    return field.kind.empty() ? index : Value{Value::List{Value{field.kind}, std::move(index)}};
  }
  static bool from(const Value& value, TouchedBuffer& field) {
    const Value::List* pair = value.as<Value::List>();
    if (!pair) return !value.as<int64_t>() && FieldTraits<BufferIndex>::from(value, field.index);
    const std::string* kind = pair->size() == 2 ? (*pair)[0].as<std::string>() : nullptr;
    const int64_t* index = kind ? (*pair)[1].as<int64_t>() : nullptr;
    if (!index || (*kind != "read" && *kind != "write")) return false;
    field.kind = *kind;
    field.index = *index;
    return true;
  }
};
/// In JSON, the map is a string: the JSON of its node.
template <>
struct FieldTraits<IndexFunction> {
  static constexpr FieldRole kRole = FieldRole::kAttr;
  static std::string type() { return "Callable[..., Any] | IndexMap"; }
  static Value to(const IndexFunction& field) { return {field.map}; }
  static bool from(const Value& value, IndexFunction& field) {
    if (const NodeRef* node = value.as<NodeRef>()) field.map = *node;
    if (const std::string* text = value.as<std::string>()) {
      auto read = from_json(*text);
      if (read.ok()) field.map = *read;
    }
    return field.map.is<IndexMap>();
  }
};
template <>
struct FieldTraits<PadValue> {
  static constexpr FieldRole kRole = FieldRole::kAttr;
  static std::string type() { return "Callable[..., Any] | IndexMap | ExprLike | None"; }
  static Value to(const PadValue& field) {
    return std::visit([](const auto& v) { return Value{v}; }, field.value);
  }
  static bool from(const Value& value, PadValue& field) {
    if (const std::string* text = value.as<std::string>()) {
      auto read = from_json(*text);
      if (!read.ok()) return false;
      field.value = *read;
      if (const FloatImm* number = read->as<FloatImm>()) field.value = number->value;  // one that is not finite
      return true;
    }
    if (value.is_none()) field.value = None{};
    if (const bool* b = value.as<bool>()) field.value = int64_t{*b};
    if (const int64_t* i = value.as<int64_t>()) field.value = *i;
    if (const double* d = value.as<double>()) field.value = *d;
    if (const NodeRef* node = value.as<NodeRef>()) field.value = *node;
    return value.is_none() || value.as<bool>() || value.as<int64_t>() || value.as<double>() || value.as<NodeRef>();
  }
};

/// Whether a field of type T holds a U or may hold one.
template <class T, class U>
constexpr bool takes = std::is_same_v<T, U>;
template <class... T, class U>
constexpr bool takes<std::variant<T...>, U> = (takes<T, U> || ...);
template <class T, class U>
constexpr bool takes<std::vector<T>, U> = takes<T, U>;
template <class T, class U>
constexpr bool takes<Star<T>, U> = takes<T, U>;
template <class T, class U>
constexpr bool takes<Flat<T>, U> = takes<T, U>;
template <class T, class U>
constexpr bool takes<OmitEmpty<T>, U> = std::is_same_v<U, None> || takes<T, U>;
template <>
inline constexpr bool takes<PadValue, None> = true;
template <>
inline constexpr bool takes<PadValue, IndexFunction> = true;
template <class T, class U>
constexpr bool takes<Decision<T>, U> = std::is_same_v<U, None> || takes<T, U>;

template <class U>
constexpr bool takes<LoopOrBlocks, U> = takes<BlockRV, U> || takes<LoopRV, U>;

template <class T>
constexpr bool is_star = false;
template <class T>
constexpr bool is_star<Star<T>> = true;
template <class T>
constexpr bool is_flat = is_star<T>;
template <class T>
constexpr bool is_flat<Flat<T>> = true;
template <class T>
constexpr bool is_omit_empty = false;
template <class T>
constexpr bool is_omit_empty<OmitEmpty<T>> = true;

}  // namespace tilewright::schedule
