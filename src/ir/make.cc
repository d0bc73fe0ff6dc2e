#include "ir/make.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "ir/ceildiv.h"
#include "ir/children.h"
#include "ir/numeric.h"
#include "ir/op.h"
#include "ir/traverse.h"
#include "support/diagnostic.h"
#include "support/ranges.h"

namespace tilewright {
namespace {

[[noreturn, gnu::cold]] void refuse(const char* code, std::string message, std::string hint = {}) {
  throw Exception(script_error(code, std::move(message), std::move(hint)));
}

[[noreturn, gnu::cold]] void refuse_missing(std::string_view kind, std::string_view field) {
  refuse("ir/missing-operand", std::string(kind) + " needs a value for '" + std::string(field) + "'");
}

[[noreturn, gnu::cold]] void refuse_kind(std::string_view kind, std::string_view field, const NodeRef& operand) {
  refuse("ir/not-an-expression",
         std::string(kind) + " takes an expression as '" + std::string(field) + "', not a " + kind_name(operand.kind()),
         operand.is<Buffer>() || operand.is<BufferRegion>() ? "index it: A[i]" : "an expression has one value");
}

/// Whether a kind is an expression. A table, because it is looked up for each child of each node.
constexpr bool kIsExpr[] = {
#define X(name, sort, ...) Sort::k##sort == Sort::kExpr,
#include "ir/kinds.def"
#undef X
};
bool is_expr(const NodeRef& node) { return kIsExpr[static_cast<size_t>(node.kind())]; }

/// Non-null for every handle but those that the catalog allows to be null; elements of lists are never null. What
/// stands for a value is an expression: arguments from Python may be any node.
template <auto... Nullable, class T>
void need_operands(const T& node) {
  for_each_field(node, [&](std::string_view name, const auto& field) {
    auto need = [&]<class N>(const N& operand) {
      if (!operand.defined()) refuse_missing(kind_name(KindOf<T>::kind), name);
      if constexpr (std::is_same_v<N, Expr>) {
        if (!is_expr(operand)) refuse_kind(kind_name(KindOf<T>::kind), name, operand);
      }
    };
    using F = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_base_of_v<NodeRef, F>) {
      [[maybe_unused]] auto at = static_cast<const void*>(&field);
      const bool may_be_null = ((at == static_cast<const void*>(&(node.*Nullable))) || ...);
      if (field.defined() || !may_be_null) need(field);
    }
    if constexpr (requires { field.begin()->defined(); }) {
      for (const auto& item : field) need(item);
    }
    if constexpr (requires { field.begin()->second.defined(); }) {
      for (const auto& [key, item] : field) need(item);
    }
    if constexpr (requires { field.begin()->first.defined(); }) {
      for (const auto& [key, item] : field) need(key);
    }
  });
}

template <class T>
void need_equal_types(const T& node) {
  if (node.a.dtype() != node.b.dtype()) {
    refuse("ir/dtype-mismatch",
           kind_name(KindOf<T>::kind) + " of " + node.a.dtype().str() + " and " + node.b.dtype().str(),
           "cast one side, for instance with T.Cast or .astype");
  }
}

void need_bool(const Expr& e, std::string_view what) {
  if (e.dtype().is_bool()) return;
  refuse("ir/not-bool", std::string(what) + " must be bool, not " + e.dtype().str(), "compare it: x != 0");
}

/// A condition of a statement is one bool, not a vector of them.
void need_one_bool(const Expr& e, std::string_view what) {
  need_bool(e, what);
  if (e.dtype().is_vector()) {
    refuse("ir/not-bool", std::string(what) + " must be one bool, not " + e.dtype().str(),
           "a predicate decides for each lane of an access: A.vload([index], predicate=...)");
  }
}

DataType vector_of(DataType element, const Expr& lanes, std::string_view kind) {
  if (!element.is_scalar())
    refuse("ir/vector-of-vector", std::string(kind) + " of the vector type " + element.str(),
           "broadcast or stretch a scalar");
  if (const IntImm* n = lanes.as<IntImm>()) {
    if (n->value < 1 || n->value > 65535) {
      refuse("ir/lanes", std::string(kind) + " with " + std::to_string(n->value) + " lanes", "use 1 to 65535 lanes");
    }
    return element.with_lanes(static_cast<int>(n->value));
  }
  auto is_vscale = [](const Expr& e) {
    const Call* call = e.as<Call>();
    const Op* op = call ? call->op.as<Op>() : nullptr;
    return op && op->name == "tir.vscale";
  };
  int64_t factor = 0;
  if (is_vscale(lanes)) factor = 1;
  if (const Mul* mul = lanes.as<Mul>()) {
    if (mul->a.is<IntImm>() && is_vscale(mul->b)) factor = mul->a.as<IntImm>()->value;
    if (mul->b.is<IntImm>() && is_vscale(mul->a)) factor = mul->b.as<IntImm>()->value;
  }
  if (factor < 1 || factor > 65535) {
    refuse("ir/lanes", std::string(kind) + " with lanes that are neither constant nor a multiple of T.vscale()",
           "a vector has a constant number of lanes");
  }
  DataType result = element.with_lanes(static_cast<int>(factor));
  result.scalable = true;
  return result;
}

/// dtype of a load or a store: the buffer's element with the lanes of the last index.
DataType access_type(const Ref<Buffer>& buffer, const std::vector<Expr>& indices, const Expr& predicate) {
  if (indices.size() != buffer->rank()) {
    refuse("ir/index-count",
           "buffer '" + buffer->name + "' has " + std::to_string(buffer->rank()) +
               (buffer->axes.empty() ? " dimensions" : " axes") + " and is accessed with " +
               std::to_string(indices.size()) + " indices",
           "one index for each dimension, all in one pair of brackets: A[i, j]");
  }
  DataType type = buffer->dtype;
  for (size_t i : indices_of(indices)) {
    DataType index = indices[i].dtype();
    if (!index.is_integral()) {
      refuse("ir/index-dtype", "index " + std::to_string(i) + " of '" + buffer->name + "' is " + index.str(),
             "indices are integers");
    }
    if (index.is_vector()) {
      if (!buffer->axes.empty())
        refuse("ir/vector-index", "the coordinates of the sparse buffer '" + buffer->name + "' cannot be vectors",
               "access one element at a time, and vectorize the loop");
      if (i + 1 != indices.size())
        refuse("ir/vector-index", "only the last index of '" + buffer->name + "' may be a vector",
               "a slice is a vector of elements of the last dimension: loop over the other dimensions");
      type.lanes = static_cast<uint16_t>(type.lanes * index.lanes);
      type.scalable = index.scalable;
    }
  }
  if (predicate.defined()) {
    need_bool(predicate, "the predicate of an access");
    if (predicate.dtype().lanes != type.lanes) {
      refuse("ir/predicate-lanes",
             "a predicate of " + std::to_string(predicate.dtype().lanes) + " lanes for an access of " +
                 std::to_string(type.lanes),
             "a predicate has a bool for each lane of the access");
    }
  }
  return type;
}

DataType pointer_type_dtype(const Type& type) {
  if (const PrimType* prim = type.as<PrimType>()) return prim->dtype;
  return type.is<PointerType>() ? DataType::handle() : DataType::void_();
}

// ---- one check per kind: returns the dtype of an expression. `data` may be normalized.

template <class T>
DataType check_operator(const T& v) {
  constexpr Kind kind = KindOf<T>::kind;
  if (kind == Kind::kAnd || kind == Kind::kOr) {
    need_bool(v.a, "an operand of a logical operator");
    need_bool(v.b, "an operand of a logical operator");
  }
  need_equal_types(v);
  DataType type = v.a.dtype();
  if (kind >= Kind::kEQ && kind <= Kind::kGE) {
    DataType compared = DataType::bool_(type.lanes);
    compared.scalable = type.scalable;
    return compared;
  }
  if (type.is_handle())
    refuse("ir/handle-arithmetic", kind_name(kind) + " of handles", "pointers are passed on, or made by T.address_of");
  if (kind == Kind::kMod && !type.is_integral())
    refuse("ir/integer-only", kind_name(kind) + " of " + type.str(), "use T.floor of a division");
  return type;
}

template <class T>
using Checked = std::conditional_t<std::is_same_v<typename KindOf<T>::SortHandle, Expr>, DataType, void>;

template <class T>
Checked<T> check(T& data) {
  need_operands(data);
  if constexpr (requires { data.a != data.b; }) {
    return check_operator(data);
  } else {
    return Checked<T>();
  }
}

template <>
DataType check(Var& v) {
  need_operands(v);
  return pointer_type_dtype(v.type_annotation);
}
template <>
DataType check(IntImm& v) {
  if (v.dtype == DataType::int_(32) && v.value == static_cast<int32_t>(v.value)) return v.dtype;  // most of them
  if (!v.dtype.is_integral() || !v.dtype.is_scalar()) {
    refuse("ir/int-dtype", "an integer constant of type " + v.dtype.str(),
           "its type is an integer or bool: T.int32(1)");
  }
  int64_t wrapped = wrap_int(v.dtype, v.value);
  if (wrapped != v.value) {
    refuse("ir/int-range", std::to_string(v.value) + " does not fit " + v.dtype.str(), "use a wider type");
  }
  return v.dtype;
}
template <>
DataType check(FloatImm& v) {
  if (!v.dtype.is_float() || !v.dtype.is_scalar()) {
    refuse("ir/float-dtype", "a floating-point constant of type " + v.dtype.str(),
           "its type is a floating-point one: T.float32(1)");
  }
  v.value = round_float(v.dtype, v.value);
  // One NaN: sign and payload would not survive text.
  if (std::isnan(v.value)) v.value = std::numeric_limits<double>::quiet_NaN();
  return v.dtype;
}
template <>
DataType check(StringImm&) {
  return DataType::handle();
}
template <>
DataType check(Cast& v) {
  need_operands(v);
  if (v.dtype.lanes != v.value.dtype().lanes || v.dtype.scalable != v.value.dtype().scalable) {
    refuse("ir/cast-lanes", "a cast of " + v.value.dtype().str() + " to " + v.dtype.str(),
           "a cast keeps the number of lanes; T.Broadcast makes a vector of a scalar");
  }
  if (v.dtype.is_handle() != v.value.dtype().is_handle()) {
    refuse("ir/cast-handle", "a cast of " + v.value.dtype().str() + " to " + v.dtype.str(),
           "T.isnullptr asks whether a pointer is null, T.reinterpret takes its bits");
  }
  return v.dtype;
}

template <>
DataType check(Not& v) {
  need_operands(v);
  need_bool(v.a, "the operand of 'not'");
  return v.a.dtype();
}
template <>
DataType check(Select& v) {
  need_operands(v);
  need_bool(v.condition, "the condition of Select");
  DataType t = v.true_value.dtype(), f = v.false_value.dtype();
  if (t != f)
    refuse("ir/dtype-mismatch", "Select between " + t.str() + " and " + f.str(), "cast one of the two values");
  if (v.condition.dtype().lanes != t.lanes && v.condition.dtype().is_vector()) {
    refuse("ir/cast-lanes", "Select of " + t.str() + " by a condition of " + v.condition.dtype().str(),
           "the condition is one bool, or one for each lane");
  }
  return t;
}
template <>
DataType check(BufferLoad& v) {
  need_operands<&BufferLoad::predicate>(v);
  return access_type(v.buffer, v.indices, v.predicate);
}
template <>
void check(BufferStore& v) {
  need_operands<&BufferStore::predicate>(v);
  DataType type = access_type(v.buffer, v.indices, v.predicate);
  if (type != v.value.dtype()) {
    refuse("ir/store-dtype",
           "a value of type " + v.value.dtype().str() + " is stored to '" + v.buffer->name + "', which holds " +
               type.str(),
           "cast the value, for instance with T.Cast");
  }
}
template <>
DataType check(Ramp& v) {
  need_operands(v);
  if (v.base.dtype() != v.stride.dtype() || !v.base.dtype().is_integral()) {
    refuse("ir/dtype-mismatch", "Ramp from " + v.base.dtype().str() + " with a stride of " + v.stride.dtype().str(),
           "start and stride have one type");
  }
  return vector_of(v.base.dtype(), v.lanes, "Ramp");
}
template <>
DataType check(Broadcast& v) {
  need_operands(v);
  return vector_of(v.value.dtype(), v.lanes, "Broadcast");
}
template <class T>
void check_let(const T& v) {
  need_operands(v);
  if (v.var.dtype() != v.value.dtype()) {
    refuse("ir/dtype-mismatch",
           kind_name(KindOf<T>::kind) + " binds " + v.value.dtype().str() + " to a variable of " + v.var.dtype().str(),
           "cast the value to the type of the variable");
  }
}
template <>
DataType check(Let& v) {
  check_let(v);
  return v.body.dtype();
}
template <>
void check(LetStmt& v) {
  check_let(v);
}
template <>
DataType check(Call& v) {
  if (const StringImm* name = v.op.as<StringImm>()) v.op = op_named(name->value);
  need_operands(v);
  if (!v.op.is<Op>() && !v.op.is<GlobalVar>())
    refuse("ir/call-op", "Call needs an Op or a GlobalVar", "T.call_extern calls functions of other libraries by name");
  return v.dtype;
}
template <>
DataType check(Shuffle& v) {
  need_operands(v);
  if (v.vectors.empty() || v.indices.empty())
    refuse("ir/missing-operand", "Shuffle needs vectors and indices", "give at least one of each");
  DataType element = v.vectors[0].dtype().element();
  int64_t lanes = 0;
  bool fixed = true;
  for (const Expr& vector : v.vectors) {
    if (vector.dtype().element() != element)
      refuse("ir/dtype-mismatch", "Shuffle of vectors of different types", "cast the vectors to one type");
    fixed = fixed && !vector.dtype().scalable;
    lanes += vector.dtype().lanes;
  }
  for (const Expr& index : v.indices) {
    const IntImm* number = index.as<IntImm>();
    if (number && fixed && (number->value < 0 || number->value >= lanes)) {
      refuse("ir/shuffle-index",
             "Shuffle takes element " + std::to_string(number->value) + " of vectors with " + std::to_string(lanes) +
                 " elements",
             "elements count through all vectors, from 0");
    }
  }
  return element.with_lanes(static_cast<int>(v.indices.size()));
}
template <>
DataType check(CommReducer& v) {
  need_operands(v);
  size_t n = v.result.size();
  if (v.lhs.size() != n || v.rhs.size() != n || v.identity_element.size() != n) {
    refuse("ir/missing-operand", "a reducer needs as many left, right and identity values as results",
           "a reducer of k results has k values on each side, and k identities");
  }
  return DataType::void_();
}
template <>
void check(Range& v) {
  need_operands(v);
  if (v.min.dtype() != v.extent.dtype() || !v.min.dtype().is_integral()) {
    refuse("ir/dtype-mismatch", "a range from " + v.min.dtype().str() + " with an extent of " + v.extent.dtype().str(),
           "start and extent have one type: T.int64(0), T.int64(8)");
  }
  v.extent = size_text(v.extent);
}
template <>
void check(IterVar& v) {
  need_operands<&IterVar::dom>(v);
}
template <>
void check(Buffer& v) {
  need_operands<&Buffer::elem_offset, &Buffer::default_value>(v);
  if (v.default_value.defined() && v.default_value.dtype() != v.dtype) {
    refuse(
        "ir/default-value",
        "the default of '" + v.name + "' is " + v.default_value.dtype().str() + ", its elements are " + v.dtype.str(),
        "give a number of that type");
  }
  if (!v.data.dtype().is_handle())
    refuse("ir/buffer-data", "the data of buffer '" + v.name + "' must be a pointer",
           "leave it out, or give a variable of type handle");
  if (v.strides.size() > v.shape.size()) {  // fewer: ir/strides.h
    refuse("ir/buffer-strides",
           "buffer '" + v.name + "' has " + std::to_string(v.shape.size()) + " dimensions and " +
               std::to_string(v.strides.size()) + " strides",
           "give one stride for each dimension, or none");
  }
  for (Expr& extent : v.shape) {
    if (!extent.dtype().is_integral())
      refuse("ir/index-dtype", "the shape of '" + v.name + "' holds " + extent.dtype().str(), "extents are integers");
    extent = size_text(extent);
  }
  for (const Expr& stride : v.strides) {
    if (!stride.dtype().is_integral())
      refuse("ir/index-dtype", "the strides of '" + v.name + "' hold " + stride.dtype().str(), "strides are integers");
  }
  if (v.elem_offset.defined() && !v.elem_offset.dtype().is_integral()) {
    refuse("ir/index-dtype", "the offset of '" + v.name + "' is " + v.elem_offset.dtype().str(),
           "an offset is an integer, in elements");
  }
  constexpr int64_t kMostAlignment = int64_t{1} << 30;  // what kernels check has 32 bits
  if (v.data_alignment < 1 || v.data_alignment > kMostAlignment || (v.data_alignment & (v.data_alignment - 1)) != 0) {
    refuse("ir/alignment", "buffer '" + v.name + "' is aligned to " + std::to_string(v.data_alignment) + " bytes",
           "an alignment is a power of two, up to 1073741824");
  }
  if (v.offset_factor < 0) {
    refuse("ir/alignment", "the offset of buffer '" + v.name + "' is a multiple of " + std::to_string(v.offset_factor),
           "the factor is at least 1");
  }
}
/// Memory of `dtype`, and how much of it.
template <class T>
void check_allocation(T& v) {
  need_operands(v);
  const std::string& name = v.buffer_var->name_hint;
  if (!v.buffer_var->type_annotation.template is<PointerType>()) {
    refuse("ir/allocation",
           "the variable '" + name + "' of an allocation is not a pointer but " + v.buffer_var.dtype().str(),
           "give a variable of type handle");
  }
  if (v.dtype.is_void())
    refuse("ir/allocation", "'" + name + "' is allocated for elements without a type",
           "name the type of the elements: \"float32\"");
  for (const Expr& extent : v.extents) {
    if (!extent.dtype().is_integral() || !extent.dtype().is_scalar()) {
      refuse("ir/index-dtype", "an extent of the allocation '" + name + "' is " + extent.dtype().str(),
             "extents are integers");
    }
  }
}
template <>
void check(Allocate& v) {
  check_allocation(v);
  need_one_bool(v.condition, "the condition of an allocation");
}
template <>
void check(AllocateConst& v) {
  check_allocation(v);
}
template <>
void check(TensorData& v) {
  int64_t bytes = int64_t{v.dtype.bytes()} * v.dtype.lanes;
  for (int64_t extent : v.shape) {
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes)) bytes = -1;
    if (bytes < 0) break;
  }
  if (bytes != static_cast<int64_t>(v.bytes.size())) {
    refuse("ir/tensor-data",
           "a constant array of " + std::to_string(v.bytes.size()) + " bytes for a shape that takes " +
               (bytes < 0 ? std::string("another number") : std::to_string(bytes)),
           "the array holds one element for each place of the shape");
  }
}
template <>
void check(IndexMap& v) {
  need_operands<&IndexMap::inverse_index_map>(v);
  if (v.inverse_index_map.defined() && !v.inverse_index_map.is<IndexMap>()) {
    refuse("ir/missing-operand", "the inverse of an index map is not an index map");
  }
}
template <>
void check(AttrStmt& v) {
  need_operands<&AttrStmt::node>(v);
}
template <>
void check(AssertStmt& v) {
  need_operands(v);
  need_one_bool(v.condition, "the condition of an assertion");
}
template <>
void check(IfThenElse& v) {
  need_operands<&IfThenElse::else_case>(v);
  need_one_bool(v.condition, "the condition of 'if'");
}
template <>
void check(While& v) {
  need_operands(v);
  need_one_bool(v.condition, "the condition of 'while'");
}
template <>
void check(For& v) {
  need_operands<&For::thread_binding>(v);
  if (v.loop_var.dtype() != v.min.dtype() || v.min.dtype() != v.extent.dtype()) {
    refuse("ir/dtype-mismatch",
           "loop variable '" + v.loop_var->name_hint + "' is " + v.loop_var.dtype().str() + ", its range " +
               v.min.dtype().str() + " and " + v.extent.dtype().str(),
           "all three have one integer type: T.int64(0), T.int64(8)");
  }
  if ((v.kind == ForKind::kThreadBinding) != v.thread_binding.defined()) {
    refuse("ir/thread-binding", "a loop has a thread axis exactly when its kind is thread_binding",
           "T.thread_binding(extent, thread=\"threadIdx.x\") makes such a loop");
  }
  v.extent = size_text(v.extent);
}
template <>
void check(SeqStmt& v) {
  need_operands(v);
  bool nested = any_of(v.seq, [](const Stmt& s) { return s.is<SeqStmt>(); });
  if (nested) {
    std::vector<Stmt> flat;
    for (const Stmt& s : v.seq) {
      if (const SeqStmt* inner = s.as<SeqStmt>()) {
        append_range(flat, inner->seq);
      } else {
        flat.push_back(s);
      }
    }
    v.seq = std::move(flat);
  }
}
template <>
void check(Block& v) {
  need_operands<&Block::init>(v);
  static std::atomic<uint64_t> next{1};
  if (v.id.value == 0) v.id.value = next.fetch_add(1);
}
template <>
void check(BlockRealize& v) {
  need_operands(v);
  need_one_bool(v.predicate, "the predicate of a block");
  if (v.iter_values.size() != v.block->iter_vars.size()) {
    refuse("ir/missing-binding",
           "block '" + v.block->name_hint + "' has " + std::to_string(v.block->iter_vars.size()) + " axes and " +
               std::to_string(v.iter_values.size()) + " bindings",
           "bind every axis, for instance with T.axis.remap");
  }
}
template <>
void check(Axis& v) {
  need_operands<&Axis::parent, &Axis::nnz_cols, &Axis::indptr, &Axis::indices, &Axis::attached>(v);
  const std::string axis = "axis '" + v.name + "'";
  if (v.is_variable() == v.nnz_cols.defined()) {
    refuse("ir/axis", axis + " has both an indptr and a number of positions below each of its parent's, or neither",
           "a variable axis has an indptr, a fixed one has nnz_cols");
  }
  if ((v.is_variable() || v.is_sparse()) != v.parent.defined()) {
    refuse("ir/axis", axis + (v.parent.defined() ? " is dense and fixed, and has a parent" : " has no parent"),
           "T.sp.dense_fixed makes a root; axes of the other kinds stand below another one");
  }
  if (v.attached.defined() && !v.parent.defined()) {
    refuse("ir/axis", axis + " is '" + v.attached->name + "' attached to no axis", "T.sp.attach(J, P) has both");
  }
  // Positions, counts and -1 for what is absent are of this type, too, and exceed the range of coordinates.
  auto holds_positions = [](DataType type) {
    return type.is_int() && type.is_scalar() && (type.bits == 32 || type.bits == 64);
  };
  if (!holds_positions(v.idtype)) {
    refuse("ir/axis", "the coordinates of " + axis + " are " + v.idtype.str(),
           "coordinates are int32 or int64; convert other arrays: indices.astype(\"int32\")");
  }
  for (const Expr* size : {&v.length, &v.nnz, &v.nnz_cols}) {
    if (size->defined() && !size->dtype().is_integral())
      refuse("ir/axis", "a size of " + axis + " is " + size->dtype().str(), "sizes are integers");
  }
  for (const Ref<Buffer>* structure : {&v.indptr, &v.indices}) {
    if (!structure->defined()) continue;
    const Buffer& buffer = **structure;
    if (buffer.shape.size() == 1 && buffer.axes.empty() && holds_positions(buffer.dtype)) continue;
    refuse("ir/axis",
           "'" + buffer.name + "', which holds the structure of " + axis + ", is not a list of int32 or int64",
           "indptr and indices have one dimension, and are int32 or int64");
  }
  v.length = size_text(v.length);
  v.nnz = size_text(v.nnz);
}
template <>
void check(SpIterVar& v) {
  need_operands(v);
  if (v.iter_type != IterType::kDataPar && v.iter_type != IterType::kCommReduce) {
    refuse("ir/axis", "variable '" + v.var->name_hint + "' of a sparse iteration is neither spatial nor a reduction",
           "one letter for each axis: S or R");
  }
  if (v.var.dtype() != v.axis->idtype) {
    refuse("ir/dtype-mismatch", "variable '" + v.var->name_hint + "' is " + v.var.dtype().str() +
                                    ", the coordinates of axis '" + v.axis->name + "' are " + v.axis->idtype.str());
  }
}
template <>
void check(SparseIteration& v) {
  need_operands<&SparseIteration::init>(v);
}
template <>
void check(PrimFunc& v) {
  if (!v.ret_type.defined()) v.ret_type = make<TupleType>({});
  need_operands(v);
  // In the order of the parameters, however it was put together: mostly it is so already.
  auto param = v.params.begin();
  bool ordered = all_of(v.buffer_map, [&](const auto& entry) {
    param = std::find(param, v.params.end(), entry.first);
    return param != v.params.end() && (++param, true);
  });
  if (ordered) return;
  std::unordered_map<NodeRef, size_t> position;
  for (size_t i : indices_of(v.params)) position.emplace(v.params[i], i);
  auto rank = [&](const auto& entry) { return find_value_or(position, entry.first, v.params.size()); };
  std::ranges::stable_sort(v.buffer_map, [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
}
template <>
void check(Module& v) {
  auto before = [](const auto& a, const auto& b) { return a.first < b.first; };
  if (!std::ranges::is_sorted(v.functions, before)) {
    std::ranges::sort(v.functions, before);
  }
}
template <>
void check(Dict&) {}

}  // namespace

/// The limit for an expression in a statement: whoever visits statements visits each operation. Counts end just above.
constexpr uint32_t kMostOperations = uint32_t{1} << 17;

[[noreturn, gnu::cold]] static void refuse_size() {
  refuse("ir/too-large",
         "an expression has more than " + std::to_string(kMostOperations) +
             " operations, counting what stands in several places each time",
         "store what is used several times to a buffer, and read it from there");
}

[[noreturn, gnu::cold]] static void refuse_depth() {
  refuse("ir/too-deep", "the program nests deeper than " + std::to_string(kMaxDepth) + " levels",
         "bind parts of it with LetStmt, or use a loop");
}

template <class T>
Ref<T> make(T data, SpanId span) {
  using SortHandle = typename KindOf<T>::SortHandle;
  DataType dtype = DataType::void_();
  if constexpr (std::is_void_v<Checked<T>>) {
    check(data);
  } else {
    dtype = check(data);
  }
  uint32_t below = 0;
  uint64_t operations = 1;
  detail::read_children(data, [&](const NodeRef& child, auto) {
    below = std::max(below, child.depth());
    if constexpr (std::is_same_v<SortHandle, Expr> || std::is_same_v<SortHandle, Stmt>) {
      if (child.defined() && is_expr(child)) operations += child.get()->operations;
    }
  });
  if (below >= kMaxDepth) refuse_depth();
  if (std::is_same_v<SortHandle, Stmt> && operations > kMostOperations) refuse_size();
  auto* node = new NodeOf<T>(std::move(data));
  Ref<T> result(node);
  node->dtype = dtype;
  node->span = span ? span : current_span();
  node->depth = below + 1;
  node->operations = static_cast<uint32_t>(std::min<uint64_t>(operations, kMostOperations + 1));
  return result;
}

#define X(name, sort, ...) template Ref<name> make<name>(name, SpanId);
#include "ir/kinds.def"
#undef X

const std::string& scope_of(const Ref<Var>& pointer) {
  static const std::string global = "global";
  const PointerType* type = pointer->type_annotation.as<PointerType>();
  return type && !type->storage_scope.empty() ? type->storage_scope : global;
}

const std::string& Buffer::scope() const { return scope_of(data); }

}  // namespace tilewright
