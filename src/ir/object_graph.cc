#include "ir/object_graph.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "ir/build.h"
#include "ir/op.h"

namespace tilewright {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kMaxDepth = 500;

struct BadGraph {
  std::string what;
};

template <class T>
T number(const std::string& text) {
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) throw BadGraph{"'" + text + "' is no number"};
  return value;
}

class GraphReader {
 public:
  explicit GraphReader(const Json& document) : objects_(document.at("nodes")), nodes_(objects_.size()) {
    if (!objects_.is_array()) throw BadGraph{"the nodes are no list"};
  }

  NodeRef node(size_t index) {
    if (index >= nodes_.size()) throw BadGraph{"there is no node " + std::to_string(index)};
    if (nodes_[index].defined()) return nodes_[index];
    if (++depth_ > kMaxDepth) throw BadGraph{"nodes nest deeper than " + std::to_string(kMaxDepth) + " levels"};
    nodes_[index] = make_node(objects_[index]);
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
    if (child.sort() != Sort::kExpr) throw BadGraph{std::string("'") + name + "' is no expression"};
    return Expr(child);
  }
  const Json& at(size_t index) {
    if (index >= objects_.size()) throw BadGraph{"there is no node " + std::to_string(index)};
    return objects_[index];
  }
  /// The text of a node that is one; in older records names stand in the attributes themselves.
  std::string name(const std::string& given) {
    if (given.empty() || given.find_first_not_of("0123456789") != std::string::npos) return given;
    return at(number<size_t>(given)).value("repr_str", std::string());
  }
  template <class T>
  std::vector<T> items(const Json& object, const char* field) {
    const Json& array = at(number<size_t>(text(object, field)));
    if (key_of(array) != "Array") throw BadGraph{std::string("'") + field + "' is no list"};
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
    static const std::unordered_map<std::string, Kind> kBinary = {{"tir.Add", Kind::kAdd},
                                                                  {"tir.Sub", Kind::kSub},
                                                                  {"tir.Mul", Kind::kMul},
                                                                  {"tir.Div", Kind::kDiv},
                                                                  {"tir.Mod", Kind::kMod},
                                                                  {"tir.FloorDiv", Kind::kFloorDiv},
                                                                  {"tir.FloorMod", Kind::kFloorMod},
                                                                  {"tir.Min", Kind::kMin},
                                                                  {"tir.Max", Kind::kMax},
                                                                  {"tir.EQ", Kind::kEQ},
                                                                  {"tir.NE", Kind::kNE},
                                                                  {"tir.LT", Kind::kLT},
                                                                  {"tir.LE", Kind::kLE},
                                                                  {"tir.GT", Kind::kGT},
                                                                  {"tir.GE", Kind::kGE},
                                                                  {"tir.And", Kind::kAnd},
                                                                  {"tir.Or", Kind::kOr}};
    const std::string key = key_of(object);
    if (auto it = kBinary.find(key); it != kBinary.end()) {
      return binary(it->second, expr(object, "a"), expr(object, "b"));
    }
    if (key == "tir.Var" || key == "tir.SizeVar") {
      const Json& attrs = object.at("attrs");
      return var(name(text(object, attrs.contains("name") ? "name" : "name_hint")), dtype(object));
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
      return make<IndexMap>(std::move(map));
    }
    throw BadGraph{"a node '" + key + "' is none of index maps"};
  }

  const Json& objects_;
  std::vector<NodeRef> nodes_;
  int depth_ = 0;
};

}  // namespace

Result<NodeRef> from_object_graph(std::string_view text) {
  constexpr const char* kHint = "TVM's JSON of index maps and expressions can be read";
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
