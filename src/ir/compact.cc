#include "ir/compact.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "ir/field_content.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright {
namespace {

constexpr std::string_view kMagic = "\x01tilewright";
/// Marks the end of the nodes, in place of a kind. The number of the root follows.
constexpr uint64_t kEnd = 255;

template <class F>
constexpr bool is_skipped = std::is_same_v<std::remove_cvref_t<F>, Identity>;

/// Nodes one after the other, what they refer to before them: the number of its kind, then its fields. Numbers are
/// written in groups of seven bits, negative ones folded in between; a node is the number of its place, 0 for none.
class CompactWriter {
 public:
  std::string write(const NodeRef& root) {
    bytes_ = kMagic;
    const uint64_t place = place_of(root);
    number(kEnd);
    number(place);
    return std::move(bytes_);
  }

 private:
  uint64_t place_of(const NodeRef& node) {
    if (!node.defined()) return 0;
    if (auto* known = find_value(places_, node.get())) return *known;
    using Fn = void (*)(CompactWriter&, const NodeRef&);
    static constexpr Fn kTable[] = {
#define X(name, sort, ...) &CompactWriter::object<name>,
#include "ir/kinds.def"
#undef X
    };
    kTable[static_cast<int>(node.kind())](*this, node);
    return places_.emplace(node.get(), places_.size() + 1).first->second;
  }
  template <class T>
  static void object(CompactWriter& self, const NodeRef& node) {
    for_each_field(*node.as<T>(), [&](std::string_view, const auto& field) { self.place(field); });
    self.number(static_cast<uint64_t>(KindOf<T>::kind));
    for_each_field(*node.as<T>(), [&](std::string_view, const auto& field) {
      if constexpr (!is_skipped<decltype(field)>) self.value(field);
    });
  }

  // The nodes that a field refers to.
  template <class F>
  void place(const F& field) {
    if constexpr (std::is_base_of_v<NodeRef, F>) place_of(field);
  }
  template <class F>
  void place(const std::vector<F>& field) {
    for (const F& item : field) place(item);
  }
  template <class A, class B>
  void place(const std::pair<A, B>& field) {
    place(field.first);
    place(field.second);
  }
  void place(const Annotations& field) {
    for (const auto& [key, item] : field.entries()) place(item);
  }

  void number(uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>(value | 128);
    bytes_ += static_cast<char>(value);
  }
  template <class F>
  void value(const F& field) {
    if constexpr (std::is_base_of_v<NodeRef, F>) {
      number(place_of(field));
    } else if constexpr (std::is_same_v<F, DataType>) {
      number(static_cast<uint64_t>(field.code));
      number(field.bits);
      number(field.lanes * 2 + field.scalable);
    } else if constexpr (std::is_same_v<F, double>) {
      const auto bits = std::bit_cast<uint64_t>(field);
      bytes_.append(reinterpret_cast<const char*>(&bits), sizeof bits);
    } else if constexpr (std::is_same_v<F, std::string>) {
      number(field.size());
      bytes_ += field;
    } else if constexpr (std::is_enum_v<F> || std::is_unsigned_v<F>) {
      number(static_cast<uint64_t>(field));
    } else {
      const int64_t signed_value = field;
      number(static_cast<uint64_t>(signed_value) << 1 ^ static_cast<uint64_t>(signed_value >> 63));
    }
  }
  template <class F>
  void value(const std::vector<F>& field) {
    number(field.size());
    for (const F& item : field) value(item);
  }
  template <class A, class B>
  void value(const std::pair<A, B>& field) {
    value(field.first);
    value(field.second);
  }
  void value(const Annotations& field) { value(field.entries()); }

  std::string bytes_;
  std::unordered_map<const NodeBase*, uint64_t> places_;
};

class CompactReader {
 public:
  explicit CompactReader(std::string_view bytes) : rest_(bytes.substr(kMagic.size())) {}

  NodeRef read() {
    using Fn = NodeRef (*)(CompactReader&);
    static constexpr Fn kTable[] = {
#define X(name, sort, ...) &CompactReader::object<name>,
#include "ir/kinds.def"
#undef X
    };
    for (uint64_t kind = number(); kind != kEnd; kind = number()) {
      if (kind >= std::size(kTable)) throw BadContent{"there is no kind of node number " + std::to_string(kind)};
      nodes_.push_back(kTable[kind](*this));
    }
    NodeRef root = node();
    if (!rest_.empty() || !root.defined()) throw BadContent{"something is left behind the program, or there is none"};
    return root;
  }

 private:
  template <class T>
  static NodeRef object(CompactReader& self) {
    T data;
    for_each_field(data, [&](std::string_view, auto& field) {
      if constexpr (!is_skipped<decltype(field)>) self.value(field);
    });
    return make(std::move(data));
  }

  std::string_view take(uint64_t count) {
    if (count > rest_.size()) throw BadContent{"it ends too early"};
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1)[0]);
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
    throw BadContent{"a number does not end"};
  }
  template <class T>
  T limited(uint64_t value) {
    if (value <= static_cast<uint64_t>(std::numeric_limits<T>::max())) return static_cast<T>(value);
    throw BadContent{"number " + std::to_string(value) + " is too large"};
  }
  DataType data_type() {
    DataType type;
    type.code = static_cast<TypeCode>(std::min<uint64_t>(number(), static_cast<uint64_t>(TypeCode::kFloat4E2M1FN)));
    type.bits = limited<uint8_t>(number());
    const uint64_t lanes = number();
    type.lanes = limited<uint16_t>(lanes / 2);
    type.scalable = lanes % 2;
    if (is_contained(types_, type)) return type;
    if (DataType::parse(type.str()) != type) throw BadContent{"there is no data type " + type.str()};
    types_.push_back(type);
    return type;
  }
  NodeRef node() {
    const uint64_t place = number();
    if (place == 0) return {};
    if (place > nodes_.size()) throw BadContent{"node " + std::to_string(place) + " is used before it is written"};
    return nodes_[place - 1];
  }

  template <class F>
  void value(F& field) {
    if constexpr (std::is_base_of_v<NodeRef, F>) {
      NodeRef found = node();
      if (!found.defined()) return;
      detail::check_sort(field, found);
      field = static_cast<F&>(found);
    } else if constexpr (std::is_same_v<F, DataType>) {
      field = data_type();
    } else if constexpr (std::is_same_v<F, double>) {
      uint64_t bits;
      std::memcpy(&bits, take(sizeof bits).data(), sizeof bits);
      field = std::bit_cast<double>(bits);
    } else if constexpr (std::is_same_v<F, std::string>) {
      field = take(number());
    } else if constexpr (std::is_enum_v<F>) {
      field = detail::enumerator<F>(limited<int64_t>(number()));
    } else if constexpr (std::is_unsigned_v<F>) {
      field = limited<F>(number());
    } else {
      const uint64_t folded = number();
      field = static_cast<F>(static_cast<int64_t>(folded >> 1) ^ -static_cast<int64_t>(folded & 1));
    }
  }
  template <class F>
  void value(std::vector<F>& field) {
    const uint64_t size = number();
    if (size > rest_.size()) throw BadContent{"it ends too early"};  // an item takes a byte at least
    field.reserve(size);
    for (uint64_t i = 0; i < size; ++i) value(field.emplace_back());
  }
  template <class A, class B>
  void value(std::pair<A, B>& field) {
    value(field.first);
    value(field.second);
  }
  void value(Annotations& field) {
    for (uint64_t left = number(); left > 0; --left) {
      std::string key;
      value(key);
      field.set(key, node());
    }
  }

  std::string_view rest_;
  std::vector<NodeRef> nodes_;
  std::vector<DataType> types_;  ///< types that were already validated
};

}  // namespace

std::string to_compact(const NodeRef& root) {
  std::string bytes;
  with_stack_for(root.depth(), [&] { bytes = CompactWriter().write(root); });
  return bytes;
}

bool is_compact(std::string_view bytes) { return bytes.starts_with(kMagic); }

Result<NodeRef> from_compact(std::string_view bytes) {
  try {
    if (!is_compact(bytes)) throw BadContent{"it does not begin like one"};
    return CompactReader(bytes).read();
  } catch (const BadContent& bad) {
    return internal_error("ir/compact", "these bytes are not a program: " + bad.what);
  } catch (const Exception& e) {
    return e.diagnostic();
  }
}

}  // namespace tilewright
