#include "ir/object_graph.h"

#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "ir/build.h"
#include "support/json_nesting.h"
#include "support/ranges.h"

namespace tilewright {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kMaxDepth = 500;  // readers and writers recurse

constexpr std::pair<std::string_view, Kind> kBinary[] = {
#define TW_ROW(Name) {"tir." #Name, Kind::k##Name},
    TW_BINARY_KINDS(TW_ROW)
#undef TW_ROW
};

struct BadGraph {
  std::string what;
};

template <class T>
T number(const std::string& text) {
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) throw BadGraph{"'" + text + "' is not a number"};
  return value;
}

class GraphReader {
 public:
  explicit GraphReader(const Json& document) : objects_(document.at("nodes")), nodes_(objects_.size()) {
    if (!objects_.is_array()) throw BadGraph{"the nodes are not a list"};
  }

  NodeRef node(size_t index) {
    const Json& object = at(index);
    if (nodes_[index].defined()) return nodes_[index];
    if (++depth_ > kMaxDepth) throw BadGraph{"nodes nest deeper than " + std::to_string(kMaxDepth) + " levels"};
    nodes_[index] = make_node(object);
    --depth_;
    return nodes_[index];
  }

 private:
  static const std::string& text(const Json& object, const char* name) {
    return object.at("attrs").at(name).get_ref<const std::string&>();
  }
  static std::string key_of(const Json& object) { return object.at("type_key").get<std::string>(); }
  DataType dtype(const Json& object) {
    auto type = DataType::parse(text(object, "dtype"));
    if (!type) throw BadGraph{"unknown data type '" + text(object, "dtype") + "'"};
    return *type;
  }
  Expr expr(const Json& object, const char* name) {
    NodeRef child = node(number<size_t>(text(object, name)));
    if (child.sort() != Sort::kExpr) throw BadGraph{std::string("'") + name + "' is not an expression"};
    return Expr(child);
  }
  const Json& at(size_t index) {
    if (index >= objects_.size()) throw BadGraph{"there is no node " + std::to_string(index)};
    return objects_[index];
  }
  /// Returns a name: an attribute has the index of a runtime.String node, in records of older versions the name itself.
  std::string name(const std::string& given) {
    if (given.empty() || given.find_first_not_of("0123456789") != std::string::npos) return given;
    return at(number<size_t>(given)).value("repr_str", std::string());
  }
  template <class T>
  std::vector<T> items(const Json& object, const char* field) {
    const Json& array = at(number<size_t>(text(object, field)));
    if (key_of(array) != "Array") throw BadGraph{std::string("'") + field + "' is not a list"};
    std::vector<T> result;
    if (!array.contains("data")) return result;
    for (const Json& item : array.at("data")) {
      NodeRef child = node(item.get<size_t>());
      if (child.sort() != Sort::kExpr || (std::is_same_v<T, Def<Var>> && !child.is<Var>())) {
        throw BadGraph{std::string("an item of '") + field + "' is of another kind"};
      }
      if constexpr (std::is_same_v<T, Expr>) {
        result.push_back(Expr(child));
      } else {
        result.emplace_back(child.cast<Var>());
      }
    }
    return result;
  }

  NodeRef make_node(const Json& object) {
    const std::string key = key_of(object);
    for (const auto& [binary_key, kind] : kBinary) {
      if (binary_key == key) return binary(kind, expr(object, "a"), expr(object, "b"));
    }
    if (key == "tir.Var" || key == "tir.SizeVar") {
      const bool is_old = object.at("attrs").contains("name_hint");
      const std::string hint = name(text(object, is_old ? "name_hint" : "name"));
      return key == "tir.Var" ? var(hint, dtype(object)) : size_var(hint, dtype(object));
    }
    if (key == "IntImm") return int_imm(dtype(object), number<int64_t>(text(object, "value")));
    if (key == "FloatImm") return float_imm(dtype(object), number<double>(text(object, "value")));
    if (key == "tir.Cast") return cast(dtype(object), expr(object, "value"));
    if (key == "tir.Not") return make<Not>({expr(object, "a")});
    if (key == "tir.Select") {
      return make<Select>({expr(object, "condition"), expr(object, "true_value"), expr(object, "false_value")});
    }
    if (key == "tir.IndexMap") {
      IndexMap map;
      map.initial_indices = items<Def<Var>>(object, "initial_indices");
      map.final_indices = items<Expr>(object, "final_indices");
      if (size_t inverse = number<size_t>(text(object, "inverse_index_map"))) map.inverse_index_map = node(inverse);
      return make(std::move(map));
    }
    throw BadGraph{"a node '" + key + "' is none of index maps"};
  }

  const Json& objects_;
  std::vector<NodeRef> nodes_;
  int depth_ = 0;
};

/// Numbers nodes in the order of its walk.
class GraphWriter {
 public:
  /// Returns the number of the node, 0 for null. Throws BadGraph for nodes that index maps do not use.
  size_t add(const NodeRef& node) {
    if (!node.defined()) return 0;
    if (auto* found = find_value(numbers_, node)) return *found;
    if (++depth_ > kMaxDepth) throw BadGraph{"too deep"};
    const size_t number = numbers_[node] = nodes_.size();
    nodes_.emplace_back();  // a node precedes its children
    Json written = write(node);
    nodes_[number] = std::move(written);
    --depth_;
    return number;
  }

  std::string document(size_t root) {
    return Json{{"root", root},
                {"nodes", std::move(nodes_)},
                {"b64ndarrays", Json::array()},
                {"attrs", {{"tvm_version", "0.20.0"}}}}
        .dump();
  }

 private:
  using Attrs = std::map<std::string, std::string>;

  size_t append(Json node) {
    nodes_.push_back(std::move(node));
    return nodes_.size() - 1;
  }
  std::string ref(const NodeRef& node) { return std::to_string(add(node)); }
  template <class T>
  std::string list(const std::vector<T>& items) {
    const size_t number = append({});
    Json data = Json::array();
    for (const T& item : items) data.push_back(add(item));
    Json array = {{"type_key", "Array"}};
    if (!data.empty()) array["data"] = std::move(data);
    nodes_[number] = std::move(array);
    return std::to_string(number);
  }
  static Json object(std::string_view key, Attrs attrs) { return {{"type_key", key}, {"attrs", std::move(attrs)}}; }
  /// Adds the attributes that all expressions have.
  static Json typed(std::string_view key, const NodeRef& node, Attrs attrs) {
    attrs["dtype"] = node.get()->dtype.str();
    attrs["span"] = "0";
    return object(key, std::move(attrs));
  }

  Json write(const NodeRef& node) {
    if (const IndexMap* map = node.as<IndexMap>()) {
      Attrs attrs = {{"initial_indices", list(map->initial_indices)}};
      attrs["final_indices"] = list(map->final_indices);
      attrs["inverse_index_map"] = ref(map->inverse_index_map);
      return object("tir.IndexMap", std::move(attrs));
    }
    const DataType dtype = node.get()->dtype;
    if (node.sort() != Sort::kExpr || !dtype.is_scalar()) throw BadGraph{"no index map"};
    if (const Var* variable = node.as<Var>(); variable && variable->type_annotation.is<PrimType>()) {
      Attrs attrs = {
          {"name", std::to_string(append({{"type_key", "runtime.String"}, {"repr_str", variable->name_hint}}))}};
      attrs["type_annotation"] = std::to_string(append(object("PrimType", {{"dtype", dtype.str()}})));
      return typed(variable->is_size ? "tir.SizeVar" : "tir.Var", node, std::move(attrs));
    }
    if (const IntImm* imm = node.as<IntImm>()) return typed("IntImm", node, {{"value", std::to_string(imm->value)}});
    if (const FloatImm* imm = node.as<FloatImm>(); imm && std::isfinite(imm->value))
      return typed("FloatImm", node, {{"value", Json(imm->value).dump()}});
    if (const Cast* cast = node.as<Cast>()) return typed("tir.Cast", node, {{"value", ref(cast->value)}});
    if (const Not* negated = node.as<Not>()) return typed("tir.Not", node, {{"a", ref(negated->a)}});
    if (const Select* select = node.as<Select>()) {
      Attrs attrs = {{"condition", ref(select->condition)}};
      attrs["true_value"] = ref(select->true_value);
      attrs["false_value"] = ref(select->false_value);
      return typed("tir.Select", node, std::move(attrs));
    }
    for (const auto& [key, kind] : kBinary) {
      if (node.kind() != kind) continue;
      const BinaryOperands operands = binary_operands(Expr(node));
      Attrs attrs = {{"a", ref(*operands.a)}};
      attrs["b"] = ref(*operands.b);
      return typed(key, node, std::move(attrs));
    }
    throw BadGraph{"no index map"};
  }

  Json nodes_ = Json::array({Json{{"type_key", ""}}});
  std::unordered_map<NodeRef, size_t> numbers_;
  int depth_ = 0;
};

}  // namespace

std::optional<std::string> to_object_graph(const NodeRef& node) {
  try {
    GraphWriter writer;
    const size_t root = writer.add(node);
    return writer.document(root);
  } catch (const BadGraph&) {
    return std::nullopt;
  }
}

Result<NodeRef> from_object_graph(std::string_view text) {
  constexpr const char* kHint = "TVM's JSON of index maps and expressions can be read";
  if (nests_too_deep(text)) return script_error("json/syntax", "lists or objects are nested too deep", kHint);
  try {
    Json document = Json::parse(text);
    return GraphReader(document).node(document.at("root").get<size_t>());
  } catch (const BadGraph& bad) {
    return script_error("json/content", bad.what, kHint);
  } catch (const Json::exception& e) {
    return script_error("json/syntax", e.what(), kHint);
  } catch (const Exception& e) {
    return e.diagnostic();
  }
}

}  // namespace tilewright
