// One line per node names its fields; everything else is derived from that line.
//
//   struct Add { Expr a, b; using Members = Fields<&Add::a, &Add::b>; };
//   for_each_field(add, [](std::string_view name, const auto& value) { ... });
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/node.h"

namespace tilewright {

template <auto... Members>
struct Fields {
  static constexpr size_t count = sizeof...(Members);
};

namespace detail {

/// Counts the members of an aggregate: the largest N for which T{any_1, ..., any_N} compiles, where AnyField converts
/// to every type. ir/children.h compares this number with Members, so that no field is forgotten there.
struct AnyField {
  template <class T>
  constexpr operator T() const;  // declared only: used in unevaluated brace initialization
};
template <class T, size_t... I>
constexpr auto brace_constructible(std::index_sequence<I...>) -> decltype(T{(void(I), AnyField{})...}, true) {
  return true;
}
template <class T, size_t N>
constexpr bool takes_fields = requires { brace_constructible<T>(std::make_index_sequence<N>{}); };
template <class T, size_t N = 0>
constexpr size_t count_fields() {
  if constexpr (takes_fields<T, N + 1>) {
    return count_fields<T, N + 1>();
  } else {
    return N;
  }
}

template <auto Member>
constexpr std::string_view member_name() {
  std::string_view text = __PRETTY_FUNCTION__;  // "... [with auto Member = &tilewright::Add::a; ...]"
  text.remove_prefix(text.find("Member = ") + 9);
  text = text.substr(0, text.find_first_of(";]"));
  // g++ prints a pointer to member as "&tilewright::Add::a"
  return text.substr(text.rfind(':') + 1);
}

/// The name of a member, found at compile time. Searching it at run time would cost more than most traversals of
/// fields.
template <auto Member>
inline constexpr std::string_view kMemberName = member_name<Member>();

template <class T, class F, auto... Members>
constexpr void apply_fields(T& node, F&& f, Fields<Members...>) {
  (f(kMemberName<Members>, node.*Members), ...);
}

}  // namespace detail

/// Calls f(name, field) for each field in the order of the list.
template <class T, class F>
constexpr void for_each_field(T& node, F&& f) {
  detail::apply_fields(node, std::forward<F>(f), typename std::remove_const_t<T>::Members{});
}

/// Annotations of loops, blocks and functions, sorted by key. A value is a number, a string, an expression, or a List,
/// Dict, IndexMap or TensorData node.
class Annotations {
 public:
  using Entry = std::pair<std::string, NodeRef>;
  Annotations() = default;
  Annotations(std::initializer_list<Entry> entries) {
    for (const Entry& entry : entries) set(entry.first, entry.second);
  }
  const std::vector<Entry>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }
  /// Null when the key is absent.
  NodeRef get(std::string_view key) const {
    for (const Entry& entry : entries_) {
      if (entry.first == key) return entry.second;
    }
    return {};
  }
  bool has(std::string_view key) const { return get(key).defined(); }
  void set(const std::string& key, NodeRef value) {
    auto it = std::ranges::lower_bound(entries_, key, {}, &Entry::first);
    if (it != entries_.end() && it->first == key) {
      it->second = std::move(value);
    } else {
      entries_.insert(it, Entry{key, std::move(value)});
    }
  }
  void erase(std::string_view key) {
    std::erase_if(entries_, [&](const Entry& entry) { return entry.first == key; });
  }

 private:
  std::vector<Entry> entries_;
};

/// A cache of analysis results, stored in the node that they describe. A result may depend on that node alone. Results
/// are freed with the node, and a copy of the aggregate starts with an empty cache. Several threads may read and add
/// results at once.
class Memo {
 public:
  struct Fact {
    const void* tag = nullptr;
    Fact* next = nullptr;
    virtual ~Fact() = default;
  };
  Memo() = default;
  Memo(const Memo&) {}
  Memo& operator=(const Memo&) {
    clear();
    return *this;
  }
  ~Memo() { clear(); }

  /// Returns the result of type T (derived from Fact), which `compute` computes on first use. T must not own a
  /// reference to the node: that would be a reference cycle, which is never freed.
  template <class T, class F>
  const T& get(F&& compute) const {
    static const char tag = 0;
    if (const Fact* found = find(&tag)) return static_cast<const T&>(*found);
    T* made = new T(compute());
    made->tag = &tag;
    Fact* head = facts_.load(std::memory_order_acquire);
    do {
      // Another thread may have been first; its facts are the same.
      if (const Fact* found = find(&tag)) {
        delete made;
        return static_cast<const T&>(*found);
      }
      made->next = head;
    } while (!facts_.compare_exchange_weak(head, made, std::memory_order_acq_rel));
    return *made;
  }

 private:
  const Fact* find(const void* tag) const {
    for (const Fact* fact = facts_.load(std::memory_order_acquire); fact; fact = fact->next) {
      if (fact->tag == tag) return fact;
    }
    return nullptr;
  }
  void clear() {
    for (Fact* fact = facts_.exchange(nullptr); fact;) delete std::exchange(fact, fact->next);
  }
  mutable std::atomic<Fact*> facts_{nullptr};
};

/// A number by which a schedule identifies a block. Equality, hash, text and JSON ignore it. A rewrite keeps it, and
/// make() replaces 0 by a new number.
struct Identity {
  uint64_t value = 0;
  Memo memo = {};  ///< analysis results about the block
};

}  // namespace tilewright
