// Building expressions and statements with the operators' rules: operands are promoted to a common type, scalars
// broadcast to the lanes of the other side, constants folded and neutral elements dropped (x + 0, x * 1, 0 * x, ...),
// as TVM v0.20 does at construction. Throws Exception ("ir/...") if operands have no common type.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/make.h"
#include "ir/op.h"

namespace tilewright {

// ---- constants -------------------------------------------------------------------------------------------------

Ref<IntImm> int_imm(DataType dtype, int64_t value);
inline Ref<IntImm> i32(int64_t value) { return int_imm(DataType::int_(32), value); }
inline Ref<IntImm> i64(int64_t value) { return int_imm(DataType::int_(64), value); }
inline Ref<IntImm> bool_imm(bool value) { return int_imm(DataType::bool_(), value); }
Ref<FloatImm> float_imm(DataType dtype, double value);
Ref<StringImm> string_imm(std::string value);
/// Returns a constant of type `dtype`, broadcast if that has lanes. Throws if the value is out of range.
Expr constant(DataType dtype, int64_t value);
Expr constant(DataType dtype, double value);
inline Expr constant(DataType dtype, int value) { return constant(dtype, static_cast<int64_t>(value)); }
inline Expr zero(DataType dtype) { return constant(dtype, int64_t{0}); }
inline Expr one(DataType dtype) { return constant(dtype, int64_t{1}); }
Expr min_value(DataType dtype);  ///< for floats, the smallest finite value
Expr max_value(DataType dtype);  ///< for floats, the largest finite value

/// The value of an IntImm (also inside a Broadcast).
std::optional<int64_t> const_int(const Expr& e);
std::optional<double> const_float(const Expr& e);
bool is_const_int(const Expr& e, int64_t value);
inline bool is_true(const Expr& e) { return e.dtype().is_bool() && is_const_int(e, 1); }
inline bool is_false(const Expr& e) { return e.dtype().is_bool() && is_const_int(e, 0); }

// ---- variables and buffers -------------------------------------------------------------------------------------

Ref<Var> var(std::string name, DataType dtype = DataType::int_(32));
Ref<Var> size_var(std::string name, DataType dtype = DataType::int_(32));
/// The data pointer of a buffer.
Ref<Var> pointer_var(std::string name, DataType element, std::string scope = "global");
/// A compact row-major buffer with a fresh data variable.
Ref<Buffer> decl_buffer(std::vector<Expr> shape, DataType dtype, std::string name = "buffer",
                        std::string scope = "global");
Ref<Range> range(Expr min, Expr extent);
/// [0, extent)
Ref<Range> range_of(Expr extent);

// ---- operators -------------------------------------------------------------------------------------------------

/// Converts both operands to their common type: the float type if one is a float and one an integer, otherwise the
/// wider type. A constant takes the type of the other operand.
void promote(Expr& a, Expr& b);
Expr cast(DataType dtype, Expr value);

Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator-(Expr a);
Expr operator+(Expr a, int64_t b);
Expr operator-(Expr a, int64_t b);
Expr operator*(Expr a, int64_t b);
/// For floats only. For integers, truncdiv() and floordiv() say how the quotient is rounded.
Expr div(Expr a, Expr b);
Expr truncdiv(Expr a, Expr b);
Expr truncmod(Expr a, Expr b);
Expr floordiv(Expr a, Expr b);
Expr floormod(Expr a, Expr b);
Expr floordiv(Expr a, int64_t b);
Expr floormod(Expr a, int64_t b);
Expr ceildiv(Expr a, Expr b);  ///< a // b + (a % b != 0)
Expr min(Expr a, Expr b);
Expr max(Expr a, Expr b);
Expr eq(Expr a, Expr b);
Expr ne(Expr a, Expr b);
Expr lt(Expr a, Expr b);
Expr le(Expr a, Expr b);
Expr gt(Expr a, Expr b);
Expr ge(Expr a, Expr b);
Expr eq(Expr a, int64_t b);
Expr ne(Expr a, int64_t b);
Expr lt(Expr a, int64_t b);
Expr le(Expr a, int64_t b);
Expr gt(Expr a, int64_t b);
Expr ge(Expr a, int64_t b);
Expr logical_and(Expr a, Expr b);
Expr logical_or(Expr a, Expr b);
Expr logical_not(Expr a);
Expr select(Expr condition, Expr true_value, Expr false_value);
Expr if_then_else(Expr condition, Expr true_value, Expr false_value);
Expr ramp(Expr base, Expr stride, int lanes);
Expr broadcast(Expr value, int lanes);
/// Applies the operator of a kind from Add to Or, with promotion and folding.
Expr binary(Kind kind, Expr a, Expr b);
/// The node of such a kind itself, not folded: an operation that is never executed may be one that folding refuses.
Expr make_binary(Kind kind, Expr a, Expr b, SpanId span = 0);

/// An intrinsic whose type follows from its arguments (Typing other than kExplicit).
Expr call(Intrinsic intrinsic, std::vector<Expr> args);
Expr call(DataType dtype, std::string_view op, std::vector<NodeRef> args);

Expr load(const Ref<Buffer>& buffer, std::vector<Expr> indices);
/// Casts the value to the buffer's type if needed.
Stmt store(const Ref<Buffer>& buffer, Expr value, std::vector<Expr> indices);

// ---- statements ------------------------------------------------------------------------------------------------

/// Returns the statements as one sequence, nested sequences flattened. Returns a single statement itself, and
/// Evaluate(0) if there is none.
Stmt seq(std::vector<Stmt> stmts);
Stmt nop();
bool is_nop(const Stmt& s);
/// The place where a block without axes runs.
Ref<BlockRealize> realized(Ref<Block> block, SpanId span = 0);
Stmt loop(Ref<Var> v, Expr extent, Stmt body, ForKind kind = ForKind::kSerial);
/// Returns a module with this function only, named "main" or by its global symbol.
Ref<Module> as_module(const Ref<PrimFunc>& func);
/// The module with function `name` replaced or added.
Ref<Module> with_function(const Ref<Module>& module, const std::string& name, const Func& func);

}  // namespace tilewright
