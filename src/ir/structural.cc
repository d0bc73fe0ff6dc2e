// Equality up to names: two programs are equal if a renaming of what they define makes them the same.
//
// Comparer walks both at once over their field lists. A field `Def<T>` pairs the two variables (buffers, axes) that it
// defines: bind() gives both the same number, and a later use matches where the numbers do. A variable that neither
// program defines is equal to itself only; with map_free_vars, it is paired with its counterpart at its first use.
// A prover, if there is one, decides whether integer expressions of different form are equal, given all pairs so far.
//
// HashWalk reads the same fields in the same order and numbers definitions in the same way, so equal programs have
// equal hashes.
#include <bit>

#include <vector>

#include "ir/added_fields.h"
#include "ir/sizes.h"
#include "ir/structural_proof.h"
#include "support/deep_stack.h"
#include "support/ranges.h"

namespace tilewright {
namespace {

/// Fields that are labels for people.
template <class T>
constexpr bool is_label(std::string_view field) {
  if constexpr (std::is_same_v<T, Var>) return field == "name_hint";
  if constexpr (std::is_same_v<T, Buffer>) return field == "name";
  if constexpr (std::is_same_v<T, Block>) return field == "name_hint";
  if constexpr (std::is_same_v<T, Axis>) return field == "name";
  if constexpr (std::is_same_v<T, SparseIteration>) return field == "name_hint";
  return false;
}

/// Whether two nodes of the same contents are two things.
bool has_identity(const NodeRef& node) { return node.is<Var>() || node.is<Buffer>() || node.is<Axis>(); }

/// Nodes and their numbers, which start at 1. Open addressing: programs define many variables and look them up more
/// often.
class NodeNumbering {
 public:
  /// 0 when the node has none.
  uint32_t find(const NodeBase* node) const {
    if (slots_.empty()) return 0;
    return slots_[place(node)].number;
  }
  void set(const NodeBase* node, uint32_t number) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[place(node)];
    if (slot.node == nullptr) ++used_;
    slot = {node, number};
  }

 private:
  struct Slot {
    const NodeBase* node = nullptr;
    uint32_t number = 0;
  };
  /// The index of the node's slot, or of the empty slot where it belongs.
  size_t place(const NodeBase* node) const {
    size_t at = (reinterpret_cast<uintptr_t>(node) * 0x9e3779b97f4a7c15ULL) >> shift_;
    while (slots_[at].node != nullptr && slots_[at].node != node) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void grow() {
    std::vector<Slot> old(std::max<size_t>(64, slots_.size() * 4));
    old.swap(slots_);
    shift_ = 64 - std::countr_zero(slots_.size());
    for (const Slot& slot : old) {
      if (slot.node) slots_[place(slot.node)] = slot;
    }
  }
  std::vector<Slot> slots_;
  size_t used_ = 0;
  int shift_ = 64;
};

// Programs are hashed and compared right after other work, so most of the time goes into fetching code and nodes that
// are not in the caches: the children of a node are prefetched before the first is visited, and code that all kinds
// share is in functions of its own, to keep the code of each kind small.

/// A handle that is used, not defined: vectors of them are arrays of NodeRef.
template <class F>
constexpr bool is_plain_handle = std::is_base_of_v<NodeRef, F> && sizeof(F) == sizeof(NodeRef) &&
                                 !requires(F f) { []<class T>(const Def<T>&) {}(f); };

template <class F>
void prefetch(const F& value) {
  if constexpr (std::is_base_of_v<NodeRef, F>) {
    __builtin_prefetch(value.get());
  } else if constexpr (requires { value.data(); }) {
    __builtin_prefetch(value.data());
  }
}
template <class T>
void prefetch_fields(const T& data) {
  [&]<auto... M>(Fields<M...>) { (prefetch(data.*M), ...); }(typename T::Members{});
}

using BufferMap = decltype(PrimFunc::buffer_map);

class Comparer {
 public:
  explicit Comparer(bool map_free_vars, DifferenceProver* prover = nullptr)
      : map_free_(map_free_vars), prover_(prover) {}
  [[gnu::noinline]] bool equal_nodes(const NodeRef& a, const NodeRef& b);
  std::optional<Mismatch> mismatch;

 private:
  [[gnu::cold, gnu::noinline]] bool differ(const NodeRef& a, const NodeRef& b, std::string_view reason) {
    mismatch = Mismatch{"", a, b, std::string(reason)};
    return false;
  }
  [[gnu::cold, gnu::noinline]] bool differ_in_kind(const NodeRef& a, const NodeRef& b) {
    return differ(a, b, kind_name(a.kind()) + " and " + kind_name(b.kind()));
  }
  [[gnu::cold, gnu::noinline]] bool differ_in_size(const NodeRef& a, const NodeRef& b, size_t left, size_t right) {
    return differ(a, b, std::to_string(left) + " and " + std::to_string(right) + " elements");
  }
  /// Builds the path to a mismatch while the recursion returns from it, so that equal programs do not pay for paths.
  [[gnu::cold, gnu::noinline]] bool inside(std::string_view before, std::string_view step, std::string_view after) {
    mismatch->path.insert(0, std::string(before) + std::string(step) + std::string(after));
    return false;
  }
  [[gnu::cold, gnu::noinline]] bool inside_element(size_t i) { return inside("[", std::to_string(i), "]"); }
  [[gnu::noinline]] void bind(const NodeRef& a, const NodeRef& b) {
    left_.set(a.get(), ++bound_);
    right_.set(b.get(), bound_);
    if (a != b) ++renamed_;
    if (prover_) pairs_.push_back({a, b});
  }
  /// A variable where it is used, or where it is defined unless it already is.
  [[gnu::noinline]] bool equal_uses(const NodeRef& a, const NodeRef& b, bool define) {
    uint32_t left = left_.find(a.get()), right = right_.find(b.get());
    if (left != 0 && left == right) return true;
    if (left != 0 || right != 0) return differ(a, b, "another variable");
    // A view that nothing declares, on memory that the programs define, is met at its first use.
    define = define || (a.is<Buffer>() && left_.find(a.as<Buffer>()->data.get()) != 0);
    if (a == b && !define && !map_free_) return true;
    if (!define && !map_free_) return differ(a, b, "different free variables");
    if (!equal_fields_of_kind(a, b)) return false;
    bind(a, b);
    return true;
  }
  bool descend(const NodeRef& a, const NodeRef& b);
  bool equal_fields_of_kind(const NodeRef& a, const NodeRef& b);
  [[gnu::cold, gnu::noinline]] bool compare_or_prove(const NodeRef& a, const NodeRef& b);

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
  bool field(const BufferMap& a, const BufferMap& b, const NodeRef& na, const NodeRef& nb);
  [[gnu::noinline]] bool field(const Annotations& a, const Annotations& b, const NodeRef& na, const NodeRef& nb);
  [[gnu::noinline]] bool define(const NodeRef& a, const NodeRef& b);
  [[gnu::noinline]] bool equal_elements(const NodeRef* a, const NodeRef* b, size_t count);
  bool field(const Identity&, const Identity&, const NodeRef&, const NodeRef&) { return true; }

  template <class T>
  static bool compare_kind(Comparer& self, const NodeRef& a, const NodeRef& b) {
    return self.compare(*a.as<T>(), *b.as<T>(), a, b);
  }

  bool map_free_;
  DifferenceProver* prover_;                   // null: nothing is proved, and the two lists below stay empty
  std::vector<DifferenceProver::Pair> pairs_;  // all that is bound
  std::vector<NodeRef> around_;                // nodes of the left side around the comparison
  bool define_sizes_ = false;                  // inside a buffer that defines the free variables of its shape
  bool in_buffer_ = false;
  int renamed_ = 0;  // bindings that map a node to another: while 0, identical pointers are equal
  uint32_t bound_ = 0;
  NodeNumbering left_, right_;  // bound variables: equal numbers correspond
};

bool Comparer::equal_nodes(const NodeRef& a, const NodeRef& b) {
  if (!a.defined() || !b.defined()) return a == b || differ(a, b, "present on one side only");
  if (prover_) return compare_or_prove(a, b);
  if (a == b && renamed_ == 0 && !map_free_ && !in_buffer_ && !has_identity(a)) return true;
  return descend(a, b);
}

inline bool Comparer::descend(const NodeRef& a, const NodeRef& b) {
  if (a.kind() != b.kind()) {
    return differ_in_kind(a, b);
  }
  if (a.is<Var>()) return equal_uses(a, b, in_buffer_ && define_sizes_);
  if (a.is<Buffer>()) return equal_uses(a, b, false);
  if (a.is<Axis>()) return equal_uses(a, b, true);
  return equal_fields_of_kind(a, b);
}

bool Comparer::compare_or_prove(const NodeRef& a, const NodeRef& b) {
  around_.push_back(a);
  bool equal = descend(a, b);
  around_.pop_back();
  if (equal || a.sort() != Sort::kExpr || b.sort() != Sort::kExpr) return equal;
  const Expr lhs(a), rhs(b);
  if (!lhs.dtype().is_int() || !lhs.dtype().is_scalar() || lhs.dtype() != rhs.dtype()) return false;
  if (!prover_->equal(lhs, rhs, pairs_, around_)) return false;
  mismatch.reset();
  return true;
}

bool Comparer::equal_fields_of_kind(const NodeRef& a, const NodeRef& b) {
  using Fn = bool (*)(Comparer&, const NodeRef&, const NodeRef&);
  static constexpr Fn kTable[] = {
#define X(name, sort, ...) &Comparer::compare_kind<name>,
#include "ir/kinds.def"
#undef X
  };
  return kTable[static_cast<int>(a.kind())](*this, a, b);
}

template <class T>
bool Comparer::compare(const T& a, const T& b, const NodeRef& na, const NodeRef& nb) {
  bool outer_sizes = define_sizes_, outer_buffer = in_buffer_;
  if constexpr (kMatchesBuffers<T>) define_sizes_ = true;
  if constexpr (std::is_same_v<T, Block>) define_sizes_ = false;
  if constexpr (std::is_same_v<T, Buffer>) in_buffer_ = true;
  bool equal = true;
  prefetch_fields(a);
  prefetch_fields(b);
  auto one = [&]<auto M>() {
    constexpr std::string_view name = detail::kMemberName<M>;
    if constexpr (!is_label<T>(name)) {
      if (!equal) return;
      if constexpr (std::is_same_v<T, Buffer> && name == "data") {
        equal = equal_uses((a.*M), (b.*M), true);  // defined here unless an outer allocation did
      } else {
        equal = field(a.*M, b.*M, na, nb);
      }
      if (!equal) inside(".", name, "");
    }
  };
  [&]<auto... M>(Fields<M...>) { (one.template operator()<M>(), ...); }(typename T::Members{});
  define_sizes_ = outer_sizes;
  in_buffer_ = outer_buffer;
  return equal;
}

template <class F>
bool Comparer::field(const F& a, const F& b, const NodeRef& na, const NodeRef& nb) {
  if constexpr (std::is_base_of_v<NodeRef, F>) {
    return equal_nodes(a, b);
  } else if constexpr (std::is_same_v<F, double>) {
    return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || differ(na, nb, "different values");
  } else {
    return a == b || differ(na, nb, "different values");
  }
}
template <class F>
bool Comparer::field(const Def<F>& a, const Def<F>& b, const NodeRef&, const NodeRef&) {
  return define(a, b);
}
bool Comparer::define(const NodeRef& a, const NodeRef& b) {
  if (!a.defined() || !b.defined()) return a == b || differ(a, b, "present on one side only");
  if (!equal_fields_of_kind(a, b)) return false;
  bind(a, b);
  return true;
}
template <class F>
bool Comparer::field(const std::vector<F>& a, const std::vector<F>& b, const NodeRef& na, const NodeRef& nb) {
  size_t count = std::min(a.size(), b.size());
  if constexpr (is_plain_handle<F>) {
    if (!equal_elements(a.data(), b.data(), count)) return false;
  } else {
    for (size_t i = 0; i < count; ++i) {
      if (!field(a[i], b[i], na, nb)) return inside_element(i);
    }
  }
  return a.size() == b.size() || differ_in_size(na, nb, a.size(), b.size());
}
bool Comparer::equal_elements(const NodeRef* a, const NodeRef* b, size_t count) {
  for (size_t i = 0; i < count; ++i) prefetch(a[i]), prefetch(b[i]);
  for (size_t i = 0; i < count; ++i) {
    if (!equal_nodes(a[i], b[i])) return inside_element(i);
  }
  return true;
}
template <class A, class B>
bool Comparer::field(const std::pair<A, B>& a, const std::pair<A, B>& b, const NodeRef& na, const NodeRef& nb) {
  return field(a.first, b.first, na, nb) && field(a.second, b.second, na, nb);
}
/// Axes stand on dense buffers of other parameters, so those come first.
bool Comparer::field(const BufferMap& a, const BufferMap& b, const NodeRef& na, const NodeRef& nb) {
  if (a.size() != b.size()) return differ_in_size(na, nb, a.size(), b.size());
  for (bool dense : {true, false}) {
    for (size_t i : indices_of(a)) {
      if (a[i].second->axes.empty() == dense && !field(a[i], b[i], na, nb)) return inside_element(i);
    }
  }
  return true;
}
bool Comparer::field(const Annotations& a, const Annotations& b, const NodeRef& na, const NodeRef& nb) {
  for (const auto& [key, value] : a.entries()) {
    bool equal = b.has(key) ? equal_nodes(value, b.get(key)) : differ(na, nb, "key '" + key + "' on one side only");
    if (!equal) return inside("['", key, "']");
  }
  for (const auto& [key, value] : b.entries()) {
    if (!a.has(key)) return differ(na, nb, "key '" + key + "' on one side only");
  }
  return true;
}

// ---- hash

/// Tags in the hashed stream: ASCII, in version 2 of the scheme.
constexpr uint64_t kNullTag = 0x6e756c6c;  // "null"
constexpr uint64_t kUseTag = 0x75736500;   // "use", and the kind
constexpr uint64_t kFreeTag = 0x66726565;  // "free"
constexpr uint64_t kDefTag = 0x646566;     // "def"

class HashWalk {
 public:
  [[gnu::noinline]] void node(const NodeRef& n) {
    if (!n.defined()) return word(kNullTag);
    if (has_identity(n)) {
      if (uint32_t number = numbers_.find(n.get())) {
        word(kUseTag + static_cast<uint64_t>(n.kind()));
        return word(number);
      }
      return define(n, kFreeTag);
    }
    contents(n);
  }
  Hash128 finish() const { return hasher_.finish(); }

 private:
  [[gnu::noinline]] void word(uint64_t value) { hasher_.word(value); }
  [[gnu::noinline]] void define(const NodeRef& n, uint64_t tag) {
    word(tag);
    contents(n);
    numbers_.set(n.get(), ++defined_);
  }
  void contents(const NodeRef& n) {
    using Fn = void (*)(HashWalk&, const NodeRef&);
    static constexpr Fn kTable[] = {
#define X(name, sort, ...) &HashWalk::fields<name>,
#include "ir/kinds.def"
#undef X
    };
    word(kind_tag(n.kind()));
    kTable[static_cast<int>(n.kind())](*this, n);
  }
  /// Hashes of stored programs stay valid: the kinds of version 2 are identified by their position in kinds.def, later
  /// kinds and later fields by their names.
  static uint64_t kind_tag(Kind kind) {
    int place = static_cast<int>(kind);
    return place < kNumberedKinds ? 0x100 + static_cast<uint64_t>(place) : name_tag(kind_name(kind));
  }
  template <class T>
  static void fields(HashWalk& self, const NodeRef& n) {
    const T& data = *n.as<T>();
    prefetch_fields(data);
    auto one = [&]<auto M>() {
      constexpr std::string_view name = detail::kMemberName<M>;
      if constexpr (is_label<T>(name)) {
        return;
      } else if constexpr (is_added_field<T>(name)) {
        if (is_default_field(data.*M)) return;
        static constexpr uint64_t kTag = name_tag(name);
        self.word(kTag);
        self.field(data.*M);
      } else if constexpr (std::is_same_v<T, Buffer> && name == "data") {
        self.node(data.*M);
      } else {
        self.field(data.*M);
      }
    };
    [&]<auto... M>(Fields<M...>) { (one.template operator()<M>(), ...); }(typename T::Members{});
  }
  template <class F>
  void field(const F& value) {
    if constexpr (std::is_base_of_v<NodeRef, F>) {
      node(value);
    } else if constexpr (std::is_same_v<F, double>) {
      word(std::bit_cast<uint64_t>(value));
    } else if constexpr (std::is_same_v<F, std::string>) {
      hasher_.bytes(value);
    } else if constexpr (std::is_same_v<F, DataType>) {
      word(value.packed());
    } else {
      word(static_cast<uint64_t>(value));
    }
  }
  template <class F>
  void field(const Def<F>& value) {
    value.defined() ? define(value, kDefTag) : word(kNullTag);
  }
  template <class F>
  void field(const std::vector<F>& value) {
    word(value.size());
    if constexpr (is_plain_handle<F>) {
      all(value.data(), value.size());
    } else {
      for (const F& item : value) field(item);
    }
  }
  [[gnu::noinline]] void all(const NodeRef* nodes, size_t count) {
    for (size_t i = 0; i < count; ++i) prefetch(nodes[i]);
    for (size_t i = 0; i < count; ++i) node(nodes[i]);
  }
  template <class A, class B>
  void field(const std::pair<A, B>& value) {
    field(value.first);
    field(value.second);
  }
  [[gnu::noinline]] void field(const Annotations& value) {
    word(value.entries().size());
    for (const auto& [key, item] : value.entries()) {
      hasher_.bytes(key);
      node(item);
    }
  }
  void field(const Identity&) {}

  Hasher hasher_;
  NodeNumbering numbers_;
  uint32_t defined_ = 0;
};

}  // namespace

namespace {

std::optional<Mismatch> compared(const NodeRef& lhs, const NodeRef& rhs, bool map_free_vars, DifferenceProver* prover) {
  std::optional<Mismatch> result;
  with_stack_for(std::max(lhs.depth(), rhs.depth()), [&] {
    Comparer comparer(map_free_vars, prover);
    comparer.equal_nodes(lhs, rhs);
    result = std::move(comparer.mismatch);
    if (result) result->path.insert(0, "<root>");
  });
  return result;
}

}  // namespace

std::optional<Mismatch> find_mismatch(const NodeRef& lhs, const NodeRef& rhs, bool map_free_vars) {
  return compared(lhs, rhs, map_free_vars, nullptr);
}
std::optional<Mismatch> find_mismatch(const NodeRef& lhs, const NodeRef& rhs, bool map_free_vars,
                                      DifferenceProver& prover) {
  return compared(lhs, rhs, map_free_vars, &prover);
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
