#include "ir/structural.h"

#include <cstring>
#include <unordered_map>
#include <vector>

#include "support/deep_stack.h"

namespace tilewright {
namespace {

/// Fields that are labels for people.
template <class T>
bool is_label(std::string_view field) {
  if constexpr (std::is_same_v<T, Var>) return field == "name_hint";
  if constexpr (std::is_same_v<T, Buffer>) return field == "name";
  if constexpr (std::is_same_v<T, Block>) return field == "name_hint";
  return false;
}

/// Kinds whose buffers define the free variables of their shapes (the rest of them only use variables).
template <class T>
constexpr bool defines_sizes = std::is_same_v<T, PrimFunc> || std::is_same_v<T, MatchBufferRegion>;

class Comparer {
 public:
  explicit Comparer(bool map_free_vars) : map_free_(map_free_vars) {}
  bool nodes(const NodeRef& a, const NodeRef& b);
  std::optional<Mismatch> mismatch;

 private:
  bool differ(const NodeRef& a, const NodeRef& b, std::string reason) {
    if (!mismatch) {
      Mismatch found{"<root>", a, b, std::move(reason)};
      for (const std::string& step : path_) found.path += step;
      mismatch = std::move(found);
    }
    return false;
  }
  void bind(const NodeRef& a, const NodeRef& b) {
    forward_[a.get()] = b.get();
    backward_[b.get()] = a.get();
    if (a != b) ++renamed_;
  }
  bool mapped(const NodeRef& a, const NodeRef& b, bool& known) {
    auto f = forward_.find(a.get());
    auto r = backward_.find(b.get());
    known = f != forward_.end() || r != backward_.end();
    return f != forward_.end() && r != backward_.end() && f->second == b.get() && r->second == a.get();
  }
  /// A variable where it is used, or where it is defined unless it already is.
  bool use(const NodeRef& a, const NodeRef& b, bool define) {
    bool known = false;
    if (mapped(a, b, known)) return true;
    if (known) return differ(a, b, "another variable");
    if (a == b && !define && !map_free_) return true;
    if (!define && !map_free_) return differ(a, b, "different free variables");
    if (!contents(a, b)) return false;
    bind(a, b);
    return true;
  }
  bool contents(const NodeRef& a, const NodeRef& b);

  template <class T>
  bool compare(const T& a, const T& b, const NodeRef& na, const NodeRef& nb);
  template <class F>
  bool field(const F& a, const F& b, const NodeRef& na, const NodeRef& nb);
  template <class F>
  bool field(const Def<F>& a, const Def<F>& b, const NodeRef& na, const NodeRef& nb);
  template <class F>
  bool field(const std::vector<F>& a, const std::vector<F>& b, const NodeRef& na, const NodeRef& nb);
  template <class A, class B>
  bool field(const std::pair<A, B>& a, const std::pair<A, B>& b, const NodeRef& na, const NodeRef& nb);
  bool field(const Annotations& a, const Annotations& b, const NodeRef& na, const NodeRef& nb);
  bool field(const Identity&, const Identity&, const NodeRef&, const NodeRef&) { return true; }

  template <class T>
  static bool compare_kind(Comparer& self, const NodeRef& a, const NodeRef& b) {
    return self.compare(*a.as<T>(), *b.as<T>(), a, b);
  }

  bool map_free_;
  bool define_sizes_ = false;  // inside a buffer that defines the free variables of its shape
  bool in_buffer_ = false;
  int renamed_ = 0;  // bindings that map a node to another: while 0, identical pointers are equal
  std::unordered_map<const NodeBase*, const NodeBase*> forward_, backward_;
  std::vector<std::string> path_;
};

bool Comparer::nodes(const NodeRef& a, const NodeRef& b) {
  if (!a.defined() || !b.defined()) return a == b || differ(a, b, "present on one side only");
  if (a == b && renamed_ == 0 && !map_free_ && !in_buffer_ && !a.is<Var>() && !a.is<Buffer>()) return true;
  if (a.kind() != b.kind()) {
    return differ(a, b, std::string(kind_name(a.kind())) + " and " + std::string(kind_name(b.kind())));
  }
  if (a.is<Var>()) return use(a, b, in_buffer_ && define_sizes_);
  // A view that nothing declares, on memory that the programs define, is met at its first use.
  if (a.is<Buffer>()) return use(a, b, forward_.contains(a.as<Buffer>()->data.get()));
  return contents(a, b);
}

bool Comparer::contents(const NodeRef& a, const NodeRef& b) {
  using Fn = bool (*)(Comparer&, const NodeRef&, const NodeRef&);
  static constexpr Fn kTable[] = {
#define X(name, sort, first, last) &Comparer::compare_kind<name>,
#include "ir/kinds.def"
#undef X
  };
  return kTable[static_cast<int>(a.kind())](*this, a, b);
}

template <class T>
bool Comparer::compare(const T& a, const T& b, const NodeRef& na, const NodeRef& nb) {
  bool outer_sizes = define_sizes_, outer_buffer = in_buffer_;
  if constexpr (defines_sizes<T>) define_sizes_ = true;
  if constexpr (std::is_same_v<T, Block>) define_sizes_ = false;
  if constexpr (std::is_same_v<T, Buffer>) in_buffer_ = true;
  bool equal = true;
  auto one = [&]<auto M>() {
    constexpr std::string_view name = detail::member_name<M>();
    if (!equal || is_label<T>(name)) return;
    path_.push_back("." + std::string(name));
    if constexpr (std::is_same_v<T, Buffer> && name == "data") {
      equal = use((a.*M), (b.*M), true);  // defined here unless an outer allocation did
    } else {
      equal = field(a.*M, b.*M, na, nb);
    }
    path_.pop_back();
  };
  [&]<auto... M>(Fields<M...>) { (one.template operator()<M>(), ...); }(typename T::Members{});
  define_sizes_ = outer_sizes;
  in_buffer_ = outer_buffer;
  return equal;
}

template <class F>
bool Comparer::field(const F& a, const F& b, const NodeRef& na, const NodeRef& nb) {
  if constexpr (std::is_base_of_v<NodeRef, F>) {
    return nodes(a, b);
  } else if constexpr (std::is_same_v<F, double>) {
    return std::memcmp(&a, &b, sizeof a) == 0 || differ(na, nb, "different values");
  } else {
    return a == b || differ(na, nb, "different values");
  }
}
template <class F>
bool Comparer::field(const Def<F>& a, const Def<F>& b, const NodeRef&, const NodeRef&) {
  if (!a.defined() || !b.defined()) return a == b || differ(a, b, "present on one side only");
  if (!contents(a, b)) return false;
  bind(a, b);
  return true;
}
template <class F>
bool Comparer::field(const std::vector<F>& a, const std::vector<F>& b, const NodeRef& na, const NodeRef& nb) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    path_.push_back("[" + std::to_string(i) + "]");
    if (!field(a[i], b[i], na, nb)) return false;
    path_.pop_back();
  }
  return a.size() == b.size() ||
         differ(na, nb, std::to_string(a.size()) + " and " + std::to_string(b.size()) + " elements");
}
template <class A, class B>
bool Comparer::field(const std::pair<A, B>& a, const std::pair<A, B>& b, const NodeRef& na, const NodeRef& nb) {
  return field(a.first, b.first, na, nb) && field(a.second, b.second, na, nb);
}
bool Comparer::field(const Annotations& a, const Annotations& b, const NodeRef& na, const NodeRef& nb) {
  for (const auto& [key, value] : a.entries()) {
    path_.push_back("['" + key + "']");
    if (!b.has(key)) return differ(na, nb, "key '" + key + "' on one side only");
    if (!nodes(value, b.get(key))) return false;
    path_.pop_back();
  }
  for (const auto& [key, value] : b.entries()) {
    if (!a.has(key)) return differ(na, nb, "key '" + key + "' on one side only");
  }
  return true;
}

// ---- hash

class HashWalk {
 public:
  void node(const NodeRef& n) {
    if (!n.defined()) return hasher_.word(0x6e756c6c);
    if (n.is<Var>() || n.is<Buffer>()) {
      auto it = numbers_.find(n.get());
      if (it != numbers_.end()) {
        hasher_.word(0x75736500 + static_cast<uint64_t>(n.kind()));
        return hasher_.word(it->second);
      }
      return define(n, 0x66726565);
    }
    contents(n);
  }
  Hash128 finish() const { return hasher_.finish(); }

 private:
  void define(const NodeRef& n, uint64_t tag) {
    hasher_.word(tag);
    contents(n);
    numbers_[n.get()] = numbers_.size() + 1;
  }
  void contents(const NodeRef& n) {
    using Fn = void (*)(HashWalk&, const NodeRef&);
    static constexpr Fn kTable[] = {
#define X(name, sort, first, last) &HashWalk::fields<name>,
#include "ir/kinds.def"
#undef X
    };
    hasher_.word(0x100 + static_cast<uint64_t>(n.kind()));
    kTable[static_cast<int>(n.kind())](*this, n);
  }
  template <class T>
  static void fields(HashWalk& self, const NodeRef& n) {
    for_each_field(*n.as<T>(), [&](std::string_view name, const auto& value) {
      if (is_label<T>(name)) return;
      if constexpr (std::is_same_v<T, Buffer>) {
        if (name == "data") return self.data_of(value);
      }
      self.field(value);
    });
  }
  template <class F>
  void data_of(const F& value) {
    if constexpr (std::is_base_of_v<NodeRef, F>) node(value);
  }
  template <class F>
  void field(const F& value) {
    if constexpr (std::is_base_of_v<NodeRef, F>) {
      node(value);
    } else if constexpr (std::is_same_v<F, double>) {
      hasher_.real(value);
    } else if constexpr (std::is_same_v<F, std::string>) {
      hasher_.bytes(value);
    } else if constexpr (std::is_same_v<F, DataType>) {
      hasher_.word(value.packed());
    } else {
      hasher_.word(static_cast<uint64_t>(value));
    }
  }
  template <class F>
  void field(const Def<F>& value) {
    if (!value.defined()) return hasher_.word(0x6e756c6c);
    define(value, 0x646566);
  }
  template <class F>
  void field(const std::vector<F>& value) {
    hasher_.word(value.size());
    for (const F& item : value) field(item);
  }
  template <class A, class B>
  void field(const std::pair<A, B>& value) {
    field(value.first);
    field(value.second);
  }
  void field(const Annotations& value) {
    hasher_.word(value.entries().size());
    for (const auto& [key, item] : value.entries()) {
      hasher_.bytes(key);
      node(item);
    }
  }
  void field(const Identity&) {}

  Hasher hasher_;
  std::unordered_map<const NodeBase*, size_t> numbers_;
};

}  // namespace

std::optional<Mismatch> find_mismatch(const NodeRef& lhs, const NodeRef& rhs, bool map_free_vars) {
  std::optional<Mismatch> result;
  with_stack_for(std::max(lhs.depth(), rhs.depth()), [&] {
    Comparer comparer(map_free_vars);
    comparer.nodes(lhs, rhs);
    result = std::move(comparer.mismatch);
  });
  return result;
}

Hash128 structural_hash(const NodeRef& node) {
  Hash128 result;
  with_stack_for(node.depth(), [&] {
    HashWalk walk;
    walk.node(node);
    result = walk.finish();
  });
  return result;
}

}  // namespace tilewright
