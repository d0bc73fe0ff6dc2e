// Types and expressions. Field names and meanings are those of TVM v0.20. docs/meaning.md says what operations compute
// in edge cases (overflow, division by zero, NaN), and docs/types.md which type a result has.
#pragma once

#include <string>
#include <vector>

#include "ir/fields.h"

namespace tilewright {

// ---- types -----------------------------------------------------------------------------------------------------

struct PrimType {
  DataType dtype;
  using Members = Fields<&PrimType::dtype>;
};
struct PointerType {
  Type element_type;
  std::string storage_scope;  ///< "" and "global" mean the same
  using Members = Fields<&PointerType::element_type, &PointerType::storage_scope>;
};
/// An empty tuple is the type of a function that returns nothing.
struct TupleType {
  std::vector<Type> fields;
  using Members = Fields<&TupleType::fields>;
};

// ---- leaves ----------------------------------------------------------------------------------------------------

struct Var {
  std::string name_hint;
  Type type_annotation;  ///< PrimType, or PointerType for the data of a buffer
  bool is_size = false;  ///< known to be at least 0 (a symbolic size; TVM's SizeVar)
  using Members = Fields<&Var::name_hint, &Var::type_annotation, &Var::is_size>;
};
struct IntImm {
  DataType dtype;
  int64_t value = 0;  ///< a uint64 constant is stored by its bits
  using Members = Fields<&IntImm::dtype, &IntImm::value>;
};
struct FloatImm {
  DataType dtype;
  double value = 0;  ///< already rounded to dtype by make()
  using Members = Fields<&FloatImm::dtype, &FloatImm::value>;
};
struct StringImm {
  std::string value;
  using Members = Fields<&StringImm::value>;
};
/// An intrinsic of ir/intrinsics.def, or an external name; used as Call::op.
struct Op {
  std::string name;  ///< "tir.exp"
  using Members = Fields<&Op::name>;
};
/// A function of the module; used as Call::op. Compared by name.
struct GlobalVar {
  std::string name_hint;
  using Members = Fields<&GlobalVar::name_hint>;
};

// ---- operators -------------------------------------------------------------------------------------------------

struct Cast {
  DataType dtype;
  Expr value;
  using Members = Fields<&Cast::dtype, &Cast::value>;
};
#define TW_BINARY(Name)                         \
  struct Name {                                 \
    Expr a, b;                                  \
    using Members = Fields<&Name::a, &Name::b>; \
  };
TW_BINARY(Add)
TW_BINARY(Sub)
TW_BINARY(Mul)
TW_BINARY(Div)  ///< truncating for integers
TW_BINARY(Mod)  ///< remainder of Div
TW_BINARY(FloorDiv)
TW_BINARY(FloorMod)
TW_BINARY(Min)
TW_BINARY(Max)
TW_BINARY(EQ)
TW_BINARY(NE)
TW_BINARY(LT)
TW_BINARY(LE)
TW_BINARY(GT)
TW_BINARY(GE)
TW_BINARY(And)
TW_BINARY(Or)
#undef TW_BINARY
/// Expands X(Kind) for each kind of binary operator.
#define TW_BINARY_KINDS_BUT_LOGIC(X) \
  X(Add) X(Sub) X(Mul) X(Div) X(Mod) X(FloorDiv) X(FloorMod) X(Min) X(Max) X(EQ) X(NE) X(LT) X(LE) X(GT) X(GE)
#define TW_BINARY_KINDS(X) TW_BINARY_KINDS_BUT_LOGIC(X) X(And) X(Or)
/// The operands of a binary operator; null for other nodes.
struct BinaryOperands {
  const Expr *a = nullptr, *b = nullptr;
  explicit operator bool() const { return a != nullptr; }
};
inline BinaryOperands binary_operands(const Expr& e) {
  switch (e.kind()) {
#define TW_CASE(Name) \
  case Kind::k##Name: \
    return {&e.as<Name>()->a, &e.as<Name>()->b};
    TW_BINARY_KINDS(TW_CASE)
#undef TW_CASE
    default:
      return {};
  }
}

struct Not {
  Expr a;
  using Members = Fields<&Not::a>;
};
/// Both values may be evaluated; use the intrinsic tir.if_then_else where only one may.
struct Select {
  Expr condition, true_value, false_value;
  using Members = Fields<&Select::condition, &Select::true_value, &Select::false_value>;
};
struct BufferLoad {
  Ref<Buffer> buffer;
  std::vector<Expr> indices;  ///< the last one may be a vector
  Expr predicate;             ///< null, or a bool vector: lanes that are false read nothing and have an undefined value
  using Members = Fields<&BufferLoad::buffer, &BufferLoad::indices, &BufferLoad::predicate>;
};
/// base, base + stride, ...: `lanes` values.
struct Ramp {
  Expr base, stride;
  Expr lanes;  ///< an IntImm, or a multiple of vscale
  using Members = Fields<&Ramp::base, &Ramp::stride, &Ramp::lanes>;
};
struct Broadcast {
  Expr value;
  Expr lanes;  ///< number of copies of `value`
  using Members = Fields<&Broadcast::value, &Broadcast::lanes>;
};
struct Let {
  Def<Var> var;  ///< scope: body
  Expr value, body;
  using Members = Fields<&Let::var, &Let::value, &Let::body>;
};
struct Call {
  DataType dtype;
  Expr op;                    ///< Op or GlobalVar
  std::vector<NodeRef> args;  ///< expressions, and for some intrinsics BufferRegion
  /// An argument that is an expression.
  const Expr& arg(size_t i) const { return static_cast<const Expr&>(args[i]); }
  using Members = Fields<&Call::dtype, &Call::op, &Call::args>;
};
struct Shuffle {
  std::vector<Expr> vectors, indices;  ///< lane i is lane indices[i] of the concatenated vectors
  using Members = Fields<&Shuffle::vectors, &Shuffle::indices>;
};
/// A commutative, associative combination of tuples: result(lhs, rhs), with its identity.
struct CommReducer {
  std::vector<Def<Var>> lhs, rhs;  ///< scope: result
  std::vector<Expr> result, identity_element;
  using Members = Fields<&CommReducer::lhs, &CommReducer::rhs, &CommReducer::result, &CommReducer::identity_element>;
};

// ---- ranges, iteration variables, buffers ----------------------------------------------------------------------

struct Range {
  Expr min, extent;
  using Members = Fields<&Range::min, &Range::extent>;
};
enum class IterType : uint8_t {
  kDataPar,      ///< spatial: iterations are independent
  kThreadIndex,  ///< thread_binding of a loop
  kCommReduce,   ///< reduction: iterations combine values, in any order
  kOrdered,      ///< scan: iterations run in order
  kOpaque,       ///< unknown dependences
  kUnrolled,     ///< this and the next three: TVM has them; a block axis cannot be of such a type
  kVectorized,
  kParallelized,
  kTensorized,
};
struct IterVar {
  Ref<Range> dom;  ///< may be null for thread axes of scripts
  Def<Var> var;    ///< scope: the whole block; for the thread_binding of a loop, its body
  IterType iter_type = IterType::kDataPar;
  std::string thread_tag;  ///< "threadIdx.x", "" when not a thread axis
  using Members = Fields<&IterVar::dom, &IterVar::var, &IterVar::iter_type, &IterVar::thread_tag>;
};
enum class BufferKind : uint8_t { kDefault, kAutoBroadcast };
struct Axis;
/// A typed, shaped view of memory. Identity matters: two Buffer nodes are two buffers.
///
/// A sparse buffer has axes, and its indices are coordinates along them; `shape` is that of the array that holds its
/// elements (ir/sparse.h).
struct Buffer {
  Def<Var> data;  ///< pointer to elements; its type carries the storage scope
  DataType dtype;
  std::vector<Expr> shape;
  std::vector<int64_t> axis_separators;  ///< dimensions at which flattening starts a new physical dimension
  std::vector<Expr> strides;             ///< in elements; empty: row-major and compact
  Expr elem_offset;                      ///< in elements; null means 0
  std::string name;
  int64_t data_alignment = 64;  ///< bytes
  int64_t offset_factor = 1;    ///< elem_offset is a multiple of this
  BufferKind buffer_type = BufferKind::kDefault;
  std::vector<Ref<Axis>> axes = {};  ///< empty: dense
  Expr default_value = {};           ///< value at coordinates that a sparse buffer does not store; null means 0
  using Members = Fields<&Buffer::data, &Buffer::dtype, &Buffer::shape, &Buffer::axis_separators, &Buffer::strides,
                         &Buffer::elem_offset, &Buffer::name, &Buffer::data_alignment, &Buffer::offset_factor,
                         &Buffer::buffer_type, &Buffer::axes, &Buffer::default_value>;

  const std::string& scope() const;  ///< that of its data
  /// Returns how many indices an access has.
  size_t rank() const { return axes.empty() ? shape.size() : axes.size(); }
};
/// The scope of the memory behind a pointer: "global", "shared", "local", ...
const std::string& scope_of(const Ref<Var>& pointer);
/// One level of the structure of sparse buffers (SparseTIR, section 3.1). Each position of the parent axis has a
/// segment of positions of this axis, and each position has a coordinate. In a fixed axis, all segments have the same
/// length; in a variable axis, `indptr` delimits them. In a dense axis, the coordinates are 0, 1, 2, ...; in a sparse
/// axis, they are stored in `indices`. Two buffers have a common axis if they refer to the same Axis node.
struct Axis {
  std::string name;
  Ref<Axis> parent;     ///< null for a root, which is fixed and dense
  Expr length;          ///< coordinates are in [0, length)
  Expr nnz;             ///< total number of positions
  Expr nnz_cols;        ///< positions per segment; null for a variable axis
  Ref<Buffer> indptr;   ///< variable axis: the segment of parent position p is [indptr[p], indptr[p + 1])
  Ref<Buffer> indices;  ///< sparse axis: the coordinate of each position
  DataType idtype = DataType::int_(32);  ///< type of coordinates
  bool sorted = true;                    ///< whether coordinates ascend within each segment
  Ref<Axis> attached = {};  ///< the axis whose positions these are, selected by the coordinate of `parent`; or null
  std::vector<Ref<Axis>> flattened = {};  ///< a root axis whose coordinates number the stored elements of these axes
  using Members = Fields<&Axis::name, &Axis::parent, &Axis::length, &Axis::nnz, &Axis::nnz_cols, &Axis::indptr,
                         &Axis::indices, &Axis::idtype, &Axis::sorted, &Axis::attached, &Axis::flattened>;

  bool is_variable() const { return indptr.defined(); }
  bool is_sparse() const { return indices.defined(); }
};
struct BufferRegion {
  Ref<Buffer> buffer;
  std::vector<Ref<Range>> region;
  using Members = Fields<&BufferRegion::buffer, &BufferRegion::region>;
};
/// `buffer` is a view of `source`. Undefined variables in its shape, strides and offset are defined here.
struct MatchBufferRegion {
  Def<Buffer> buffer;
  Ref<BufferRegion> source;
  using Members = Fields<&MatchBufferRegion::buffer, &MatchBufferRegion::source>;
};
/// The function initial_indices -> final_indices.
struct IndexMap {
  std::vector<Def<Var>> initial_indices;  ///< scope: final_indices
  std::vector<Expr> final_indices;
  NodeRef inverse_index_map;  ///< null or an IndexMap
  using Members = Fields<&IndexMap::initial_indices, &IndexMap::final_indices, &IndexMap::inverse_index_map>;
};

// ---- values of annotations -------------------------------------------------------------------------------------

struct List {
  std::vector<NodeRef> items;
  using Members = Fields<&List::items>;
};
struct Dict {
  Annotations items;
  using Members = Fields<&Dict::items>;
};
/// A constant array, row-major.
struct TensorData {
  DataType dtype;
  std::vector<int64_t> shape;
  std::string bytes;
  using Members = Fields<&TensorData::dtype, &TensorData::shape, &TensorData::bytes>;
};

}  // namespace tilewright
