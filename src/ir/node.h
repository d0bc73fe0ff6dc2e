// Handles and headers of IR nodes: what every kind of node has in common.
//
//   Ref<For> loop = make<For>({...});   // ir/make.h: the only way to build a node; checks types
//   loop->extent                        // fields of the aggregate For (ir/stmt.h)
//   if (auto add = e.as<Add>()) use(add->a);
//
// Nodes are immutable and shared by an intrusive atomic count. A Ref<T> converts to the handle of its sort: Ref<For> to
// Stmt, Ref<Add> to Expr, all of them to NodeRef. operator== on handles is identity; structural equality is a function
// (ir/structural.h), and the comparison node is eq(a, b) (ir/build.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "ir/dtype.h"
#include "ir/node_memory.h"
#include "support/span.h"

namespace tilewright {

enum class Kind : uint8_t {
#define X(name, sort, ...) k##name,
#include "ir/kinds.def"
#undef X
};
inline constexpr int kNumKinds = 0
#define X(name, sort, ...) +1
#include "ir/kinds.def"
#undef X
    ;
enum class Sort : uint8_t { kExpr, kStmt, kType, kFunc, kAux };

const std::string& kind_name(Kind kind);
Sort kind_sort(Kind kind);
/// The stages of a program, from what users write to what code is generated from. Each allows certain kinds of nodes.
enum class Stage : uint8_t {
  kSparse,     ///< iterations over sparse axes beside blocks
  kScheduled,  ///< blocks
  kLowered,    ///< no blocks
};
/// "sparse", "scheduled", "lowered"
std::string_view stage_name(Stage stage);
/// Whether nodes of the kind may occur in a program at this stage.
bool kind_allowed(Kind kind, Stage stage);

/// The header before each aggregate.
class NodeBase {
 public:
  Kind kind;
  DataType dtype;      ///< of expressions: derived by make(); void otherwise
  uint32_t depth = 1;  ///< 1 + the largest depth of a child
  SpanId span = 0;     ///< takes no part in equality
  /// Number of expressions in this one, itself included. A shared one counts once for each use, since traversals visit
  /// each use.
  uint32_t operations = 1;

  virtual ~NodeBase() = default;
  static void* operator new(size_t bytes) { return allocate_node(bytes); }
  static void operator delete(void* node, size_t bytes) noexcept { free_node(node, bytes); }
  void retain() const { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(this);
  }
  uint32_t use_count() const { return refs_.load(std::memory_order_relaxed); }

 protected:
  explicit NodeBase(Kind kind_) : kind(kind_) {}

 private:
  /// Frees the node and, without recursion, whatever only it kept alive.
  static void destroy(const NodeBase* node);
  mutable std::atomic<uint32_t> refs_{0};
};

/// Base classes of the nodes of one sort, for the Python binding.
struct ExprNode : NodeBase {
  using NodeBase::NodeBase;
};
struct StmtNode : NodeBase {
  using NodeBase::NodeBase;
};
struct TypeNode : NodeBase {
  using NodeBase::NodeBase;
};
struct FuncNode : NodeBase {
  using NodeBase::NodeBase;
};
struct AuxNode : NodeBase {
  using NodeBase::NodeBase;
};

template <class T>
struct KindOf;
template <class T>
struct NodeOf final : KindOf<T>::Header {
  explicit NodeOf(T&& value);
  T data;
};

#define X(name, sort, ...) struct name;
#include "ir/kinds.def"
#undef X

class NodeRef;
class Expr;
class Stmt;
class Type;
class Func;
template <class T>
class Ref;

/// Kind and sort of an aggregate, known from kinds.def while the aggregate is still incomplete.
#define TW_SORT_Expr Expr
#define TW_SORT_Stmt Stmt
#define TW_SORT_Type Type
#define TW_SORT_Func Func
#define TW_SORT_Aux NodeRef
#define X(name, sort, ...)                      \
  template <>                                   \
  struct KindOf<name> {                         \
    static constexpr Kind kind = Kind::k##name; \
    using SortHandle = TW_SORT_##sort;          \
    using Header = sort##Node;                  \
  };
#include "ir/kinds.def"
#undef X

template <class T>
NodeOf<T>::NodeOf(T&& value) : KindOf<T>::Header(KindOf<T>::kind), data(std::move(value)) {}

class NodeRef {
 public:
  NodeRef() = default;
  explicit NodeRef(const NodeBase* node) : node_(node) {
    if (node_) node_->retain();
  }
  NodeRef(const NodeRef& other) : NodeRef(other.node_) {}
  NodeRef(NodeRef&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  NodeRef& operator=(NodeRef other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~NodeRef() {
    if (node_) node_->release();
  }

  explicit operator bool() const { return node_ != nullptr; }
  bool defined() const { return node_ != nullptr; }
  const NodeBase* get() const { return node_; }
  Kind kind() const { return node_->kind; }
  Sort sort() const { return kind_sort(node_->kind); }
  SpanId span() const { return node_->span; }
  uint32_t depth() const { return node_ ? node_->depth : 0; }
  template <class T>
  bool is() const {
    return node_ && node_->kind == KindOf<T>::kind;
  }
  /// The aggregate, or null when the node is of another kind. Valid while the handle lives.
  template <class T>
  const T* as() const {
    return is<T>() ? &static_cast<const NodeOf<T>*>(node_)->data : nullptr;
  }
  /// The typed handle; null when the node is of another kind.
  template <class T>
  Ref<T> cast() const;
  /// This handle seen as a typed one, without touching the count. Only after is<T>().
  template <class T>
  const Ref<T>& borrow() const {
    return static_cast<const Ref<T>&>(*this);
  }
  friend bool operator==(const NodeRef& a, const NodeRef& b) { return a.node_ == b.node_; }

 protected:
  const NodeBase* node_ = nullptr;
};

class Expr : public NodeRef {
 public:
  using NodeRef::NodeRef;
  explicit Expr(const NodeRef& node) : NodeRef(node) {}
  DataType dtype() const { return node_->dtype; }
};
class Stmt : public NodeRef {
 public:
  using NodeRef::NodeRef;
  explicit Stmt(const NodeRef& node) : NodeRef(node) {}
};
class Type : public NodeRef {
 public:
  using NodeRef::NodeRef;
  explicit Type(const NodeRef& node) : NodeRef(node) {}
};
class Func : public NodeRef {
 public:
  using NodeRef::NodeRef;
  explicit Func(const NodeRef& node) : NodeRef(node) {}
};

template <class T>
class Ref : public KindOf<T>::SortHandle {
 public:
  using Base = typename KindOf<T>::SortHandle;
  using Base::Base;
  Ref() = default;
  const T* operator->() const { return &static_cast<const NodeOf<T>*>(this->node_)->data; }
  const T& operator*() const { return *operator->(); }
};

template <class T>
Ref<T> NodeRef::cast() const {
  return is<T>() ? Ref<T>(node_) : Ref<T>();
}

/// A field that defines a variable or buffer. A comment at the field names the scope of the definition.
template <class T>
class Def : public Ref<T> {
 public:
  using Ref<T>::Ref;
  Def() = default;
  Def(const Ref<T>& ref) : Ref<T>(ref) {}  // NOLINT: implicit on purpose
};

/// Wraps a handle in a shared_ptr, for Diagnostic::nodes: support/ does not know NodeRef.
std::shared_ptr<const void> keep(const NodeRef& node);
/// Returns the handle that keep() wrapped.
NodeRef kept(const std::shared_ptr<const void>& pointer);

}  // namespace tilewright

template <class T>
struct std::hash<tilewright::Ref<T>> {
  size_t operator()(const tilewright::NodeRef& ref) const noexcept { return std::hash<const void*>()(ref.get()); }
};
template <>
struct std::hash<tilewright::NodeRef> {
  size_t operator()(const tilewright::NodeRef& ref) const noexcept { return std::hash<const void*>()(ref.get()); }
};
template <>
struct std::hash<tilewright::Expr> : std::hash<tilewright::NodeRef> {};
template <>
struct std::hash<tilewright::Stmt> : std::hash<tilewright::NodeRef> {};
