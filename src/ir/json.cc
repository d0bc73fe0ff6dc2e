#include "ir/json.h"

#include <bit>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "ir/added_fields.h"
#include "ir/field_content.h"
#include "ir/object_graph.h"
#include "ir/traverse.h"
#include "support/json_nesting.h"
#include "support/ranges.h"

namespace tilewright {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kVersion = 2;
constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

class JsonWriter {
 public:
  Json write(const NodeRef& root) {
    int index = id(root);
    return Json{{"tilewright", kVersion}, {"root", index}, {"nodes", std::move(nodes_)}};
  }

 private:
  int id(const NodeRef& node) {
    if (auto* found = find_value(ids_, node.get())) return *found;
    using Fn = Json (*)(JsonWriter&, const NodeRef&);
    static constexpr Fn kTable[] = {
#define X(name, sort, ...) &JsonWriter::object<name>,
#include "ir/kinds.def"
#undef X
    };
    Json object = kTable[static_cast<int>(node.kind())](*this, node);
    int index = static_cast<int>(nodes_.size());
    nodes_.push_back(std::move(object));
    ids_.emplace(node.get(), index);
    return index;
  }
  template <class T>
  static Json object(JsonWriter& self, const NodeRef& node) {
    Json result{{"class", kind_name(KindOf<T>::kind)}};
    for_each_field(*node.as<T>(), [&](std::string_view name, const auto& field) {
      if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(field)>, Identity>) {
        if (is_added_field<T>(name) && is_default_field(field)) return;
        result[std::string(name)] = self.value(field);
      }
    });
    if constexpr (std::is_same_v<T, TensorData>) result["bytes"] = encode_base64(node.as<TensorData>()->bytes);
    return result;
  }
  template <class F>
  Json value(const F& field) {
    if constexpr (std::is_base_of_v<NodeRef, F>) {
      return field.defined() ? Json(id(field)) : Json(nullptr);
    } else if constexpr (std::is_same_v<F, DataType>) {
      return field.str();
    } else if constexpr (std::is_same_v<F, double>) {
      // By the bits, so that NaN payloads, infinities and -0 survive.
      return std::bit_cast<uint64_t>(field);
    } else if constexpr (std::is_enum_v<F>) {
      return static_cast<int>(field);
    } else {
      return field;
    }
  }
  template <class F>
  Json value(const std::vector<F>& field) {
    Json result = Json::array();
    for (const F& item : field) result.push_back(value(item));
    return result;
  }
  template <class A, class B>
  Json value(const std::pair<A, B>& field) {
    return Json::array({value(field.first), value(field.second)});
  }
  Json value(const Annotations& field) {
    Json result = Json::object();
    for (const auto& [key, item] : field.entries()) result[key] = value(item);
    return result;
  }

  Json nodes_ = Json::array();
  std::unordered_map<const NodeBase*, int> ids_;
};

class JsonReader {
 public:
  NodeRef read(const Json& document) {
    if (!document.is_object() || document.value("tilewright", 0) != kVersion) {
      throw BadContent{"this is not IR written by version " + std::to_string(kVersion) + " of the format"};
    }
    const Json& list = document.at("nodes");
    if (!list.is_array()) throw BadContent{"'nodes' is not a list"};
    for (const Json& object : list) nodes_.push_back(node(object));
    return child(document.at("root"));
  }

 private:
  NodeRef node(const Json& object) {
    using Fn = NodeRef (*)(JsonReader&, const Json&);
    static const std::unordered_map<std::string_view, Fn> kTable = {
#define X(name, sort, ...) {#name, &JsonReader::object_of<name>},
#include "ir/kinds.def"
#undef X
    };
    auto* found = find_value(kTable, object.at("class").get_ref<const std::string&>());
    if (!found) throw BadContent{"unknown kind of node " + object.at("class").dump()};
    return (*found)(*this, object);
  }
  template <class T>
  static NodeRef object_of(JsonReader& self, const Json& object) {
    T data;
    for_each_field(data, [&](std::string_view name, auto& field) {
      if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(field)>, Identity>) {
        if (is_added_field<T>(name) && !object.contains(name)) return;
        self.value(field, object.at(std::string(name)));
      }
    });
    if constexpr (std::is_same_v<T, TensorData>) {
      Result<std::string> bytes = decode_base64(data.bytes);
      if (!bytes.ok()) throw BadContent{bytes.error().message};
      data.bytes = std::move(*bytes);
    }
    return make(std::move(data));
  }
  NodeRef child(const Json& index) {
    if (!index.is_number_unsigned()) throw BadContent{"expected the number of a node, found " + index.dump()};
    size_t i = index.get<size_t>();
    if (i >= nodes_.size()) throw BadContent{"node " + std::to_string(i) + " is used before it is written"};
    return nodes_[i];
  }
  template <class F>
  void value(F& field, const Json& json) {
    if constexpr (std::is_base_of_v<NodeRef, F>) {
      if (json.is_null()) return;
      NodeRef node = child(json);
      detail::check_sort(field, node);
      field = static_cast<F&>(node);
    } else if constexpr (std::is_same_v<F, DataType>) {
      auto type = DataType::parse(json.get<std::string>());
      if (!type) throw BadContent{"unknown data type " + json.dump()};
      field = *type;
    } else if constexpr (std::is_same_v<F, double>) {
      field = std::bit_cast<double>(integer<uint64_t>(json));
    } else if constexpr (std::is_enum_v<F>) {
      field = detail::enumerator<F>(integer<int64_t>(json));
    } else if constexpr (std::is_integral_v<F> && !std::is_same_v<F, bool>) {
      field = integer<F>(json);
    } else {
      field = json.get<F>();
    }
  }
  template <class T>
  static T integer(const Json& json) {
    constexpr bool kSigned = std::is_signed_v<T>;
    if (!json.is_number_integer() || (!kSigned && !json.is_number_unsigned()) ||
        (kSigned && json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))) {
      throw BadContent{"expected an integer, found " + json.dump()};
    }
    return json.get<T>();
  }
  template <class F>
  void value(std::vector<F>& field, const Json& json) {
    if (!json.is_array()) throw BadContent{"expected a list, found " + json.dump()};
    for (const Json& item : json) value(field.emplace_back(), item);
  }
  template <class A, class B>
  void value(std::pair<A, B>& field, const Json& json) {
    value(field.first, json.at(0));
    value(field.second, json.at(1));
  }
  void value(Annotations& field, const Json& json) {
    for (const auto& [key, item] : json.items()) field.set(key, child(item));
  }

  std::vector<NodeRef> nodes_;
};

}  // namespace

std::string to_json(const NodeRef& root) {
  std::string text;
  with_stack_for(root.depth(),
                 [&] { text = JsonWriter().write(root).dump(-1, ' ', false, Json::error_handler_t::replace); });
  return text;
}

Result<NodeRef> from_json(std::string_view text) {
  if (nests_too_deep(text)) {
    return script_error("json/syntax", "lists or objects are nested too deep",
                        "only text written by to_json can be read");
  }
  try {
    Json document = Json::parse(text);
    bool graph = document.is_object() && !document.contains("tilewright") && document.contains("nodes");
    return graph ? from_object_graph(text) : JsonReader().read(document);
  } catch (const BadContent& bad) {
    return script_error("json/content", bad.what, "only text written by to_json can be read");
  } catch (const Json::exception& e) {
    return script_error("json/syntax", e.what(), "only text written by to_json can be read");
  } catch (const Exception& e) {
    return e.diagnostic();
  }
}

std::string encode_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t j = 0; j < 3; ++j) group = group << 8 | (j < count ? static_cast<uint8_t>(bytes[i + j]) : 0);
    for (size_t j = 0; j < 4; ++j) text += j <= count ? kDigits[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

Result<std::string> decode_base64(std::string_view text) {
  std::string bytes;
  uint32_t group = 0;
  int bits = 0;
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  for (char c : text) {
    const char* at = std::strchr(kDigits, c);
    if (!at || c == '\0') return script_error("json/base64", "a character outside the base64 alphabet");
    group = group << 6 | static_cast<uint32_t>(at - kDigits);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes += static_cast<char>(group >> bits & 255);
    }
  }
  return bytes;
}

}  // namespace tilewright
