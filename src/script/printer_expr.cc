// Expressions. An operator prints infix only where the parser would build the same node from it.
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "ir/build.h"
#include "ir/kind_cases.h"
#include "ir/literal.h"
#include "ir/structural.h"
#include "script/interval.h"
#include "script/printer_state.h"
#include "support/ranges.h"

namespace tilewright::script {
namespace {

bool is_constant(const Expr& e) { return e.is<IntImm>() || e.is<FloatImm>(); }

/// Whether an operator of ir/build.h returns something else than the node (a, b): it folds constants and drops
/// neutral elements. The conditions may be wider than there, never stricter (tested against ir/build.h).
bool operator_folds(Kind kind, const Expr& a, const Expr& b) {
  if (is_constant(a) && is_constant(b)) return true;
  auto const_a = const_int(a), const_b = const_int(b);
  auto float_is = [](const Expr& e, double value) { return const_float(e) == value; };
  switch (kind) {
    case Kind::kAdd:
      return const_a == 0 || const_b == 0 || float_is(a, 0) || float_is(b, 0);
    case Kind::kSub:
      return const_b == 0 || float_is(b, 0);
    case Kind::kMul:
      return (const_a && *const_a >= 0 && *const_a <= 1) || (const_b && *const_b >= 0 && *const_b <= 1) ||
             float_is(a, 1) || float_is(b, 1);
    case Kind::kDiv:
    case Kind::kMod:
    case Kind::kFloorDiv:
    case Kind::kFloorMod:
      return const_a == 0 || const_b == 0 || const_b == 1 || float_is(b, 0);
    case Kind::kMin:
    case Kind::kMax:
      return a == b;
    case Kind::kAnd:
    case Kind::kOr:
      return const_a || const_b;
    default:
      return false;
  }
}

}  // namespace

void Printer::tuple(const std::vector<Expr>& items) {
  out_ += '(';
  exprs(items);
  text(items.size() == 1 ? ",)" : ")");
}

void Printer::int_imm(DataType dtype, int64_t value) {
  if (int_dtype_ && dtype == *int_dtype_) return number(value);
  dtype_name(dtype);
  if (dtype.is_bool()) return text(value ? "(True)" : "(False)");
  out_ += '(';
  if (dtype.is_uint()) {
    text(std::to_string(static_cast<uint64_t>(value)));
  } else {
    number(value);
  }
  out_ += ')';
}

void Printer::float_imm(DataType dtype, double value) {
  bool bare = float_dtype_ && dtype == *float_dtype_ && std::isfinite(value);
  if (!bare) {
    dtype_name(dtype);
    out_ += '(';
  }
  if (std::isfinite(value)) {
    char digits[32];
    auto result = std::to_chars(digits, digits + sizeof digits, value);
    std::string_view shortest(digits, result.ptr - digits);
    out_ += shortest;
    if (shortest.find_first_of(".e") == std::string_view::npos) text(".0");
  } else {
    text(std::isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"");
  }
  if (!bare) out_ += ')';
}

void Printer::binary_call(std::string_view name, const Expr& a, const Expr& b) {
  tir(name);
  out_ += '(';
  expr(a);
  text(", ");
  expr(b);
  out_ += ')';
}

void Printer::binary(Kind kind, const Expr& a, const Expr& b, int min_precedence) {
  if (kind == Kind::kMod) return binary_call("truncmod", a, b);  // which scripts never fold
  if (operator_folds(kind, a, b)) return binary_call(kind_name(kind), a, b);
  if (kind == Kind::kMin) return binary_call("min", a, b);
  if (kind == Kind::kMax) return binary_call("max", a, b);
  const Infix infix = infix_of(kind, a.dtype());
  if (infix.symbol.empty()) return binary_call(kind_name(kind), a, b);
  bool parenthesized = infix.precedence < min_precedence;
  if (parenthesized) out_ += '(';
  // Comparisons do not chain: both sides bind tighter.
  expr(a, infix.precedence == kCompare ? kCompare + 1 : infix.precedence);
  text(infix.symbol);
  expr(b, infix.precedence + 1);
  if (parenthesized) out_ += ')';
}

void Printer::logic(const Expr& e, int min_precedence) {
  const Expr& a = e.as<Not>()->a;
  if (a.dtype().is_vector() || const_int(a)) {
    tir("Not(");
    expr(a);
    return text(")");
  }
  bool parenthesized = kNot < min_precedence;
  text(parenthesized ? "(not " : "not ");
  expr(a, kNot);
  if (parenthesized) out_ += ')';
}

void Printer::access_indices(const std::vector<Expr>& indices) {
  out_ += '[';
  if (indices.empty()) text("()");
  list(indices, [&](const Expr& index) {
    const Ramp* ramp = index.as<Ramp>();
    if (!slices_ || !ramp || !ramp->stride.is<IntImm>()) return expr(index);
    int64_t stride = ramp->stride.as<IntImm>()->value;
    Expr step = stride == 1 ? Expr() : ramp->stride;
    const IntImm* lanes = ramp->lanes.as<IntImm>();
    Expr extent = lanes ? constant(ramp->base.dtype(), stride * lanes->value)
                        : ramp->lanes * constant(ramp->lanes.dtype(), stride);
    Expr stop = stop_of(ramp->base, extent);
    if (stride <= 0) return expr(index);
    Expr again = ramp_of_slice(ramp->base, stop, step);
    if (!again.defined() || !same_expr(again, index)) return expr(index);
    Marking mark(*this, index);
    expr(ramp->base);
    out_ += ':';
    expr(stop);
    if (step.defined()) {
      out_ += ':';
      expr(step);
    }
  });
  out_ += ']';
}

void Printer::load(const BufferLoad& load) {
  text(name_of(load.buffer));
  if (!load.predicate.defined()) return access_indices(load.indices);
  text(".vload([");
  exprs(load.indices);
  text("], predicate=");
  expr(load.predicate);
  text(")");
}

void Printer::let(const Let& let) {
  // The variable lives in the expression only. It is declared in front of the line, and keeps its name to the end of
  // the scope, since other expressions of the line may declare more.
  const std::string& name = names_.take(with_address(let.var->name_hint, let.var), "v");
  frames_.back().undo.push_back({nullptr, std::nullopt, name});
  insert_line(line_start_, indent_, name + " = " + captured([&] { var_creation(let.var); }));
  auto [it, fresh] = entries_.try_emplace(let.var.get());
  Entry outer = std::exchange(it->second, {name, static_cast<int>(frames_.size()) - 1});
  tir("Let(");
  expr(let.body);
  text(", where={");
  text(name);
  text(": ");
  {
    Marking mark(*this, let.value);
    expr(let.value);
  }
  text("})");
  if (fresh) {
    entries_.erase(let.var.get());
  } else {
    entries_[let.var.get()] = std::move(outer);
  }
}

void Printer::comm_reducer(const CommReducer& reducer) {
  push_frame();
  tir("comm_reducer(lambda ");
  std::vector<Ref<Var>> vars(reducer.lhs.begin(), reducer.lhs.end());
  append_range(vars, reducer.rhs);
  list(vars, [&](const Ref<Var>& var) { text(define_var(var)); });
  text(": ");
  if (reducer.result.size() == 1) {
    expr(reducer.result[0]);
  } else {
    tuple(reducer.result);
  }
  pop_frame();
  text(", [");
  exprs(reducer.identity_element);
  text("])");
}

void Printer::expr(const Expr& e, int min_precedence) {
  if (!e.defined()) return text("None");
  if (int_dtype_ && e.get()->operations <= kMostOperationsOfTree && overflows_as_numbers(e)) {
    const std::optional<DataType> bare = std::exchange(int_dtype_, std::nullopt);
    expr(e, min_precedence);
    int_dtype_ = bare;
    return;
  }
  Marking mark(*this, e);
  const auto [left, right] = binary_operands(e);
  switch (e.kind()) {
    case Kind::kVar:
      return text(name_of(e.borrow<Var>()));
    case Kind::kIntImm:
      return int_imm(e.dtype(), e.as<IntImm>()->value);
    case Kind::kFloatImm:
      return float_imm(e.dtype(), e.as<FloatImm>()->value);
    case Kind::kStringImm:
      return string_value(e.borrow<StringImm>());
    case Kind::kOp:
      text(ir_);
      text("Op(");
      string_literal(e.as<Op>()->name);
      return text(")");
    case Kind::kGlobalVar:
      return global_var(*e.as<GlobalVar>());
    case Kind::kCast:
      tir("Cast(");
      dtype_string(e.as<Cast>()->dtype);
      text(", ");
      expr(e.as<Cast>()->value);
      return text(")");
      TW_BINARY_KINDS(TW_CASE_OF)
      return binary(e.kind(), *left, *right, min_precedence);
    case Kind::kNot:
      return logic(e, min_precedence);
    case Kind::kSelect: {
      const Select& select = *e.as<Select>();
      tir("Select(");
      exprs({select.condition, select.true_value, select.false_value});
      return text(")");
    }
    case Kind::kBufferLoad:
      return load(*e.as<BufferLoad>());
    case Kind::kRamp: {
      const Ramp& ramp = *e.as<Ramp>();
      tir("Ramp(");
      exprs({ramp.base, ramp.stride, ramp.lanes});
      return text(")");
    }
    case Kind::kBroadcast:
      return binary_call("Broadcast", e.as<Broadcast>()->value, e.as<Broadcast>()->lanes);
    case Kind::kLet:
      return let(*e.as<Let>());
    case Kind::kCall:
      return call(*e.as<Call>());
    case Kind::kShuffle:
      tir("Shuffle([");
      without_slices([&] { exprs(e.as<Shuffle>()->vectors); });
      text("], [");
      exprs(e.as<Shuffle>()->indices);
      return text("])");
    case Kind::kCommReducer:
      return comm_reducer(*e.as<CommReducer>());
#define X TW_CASE_UNLESS_EXPR
#include "ir/kinds.def"
#undef X
      return inline_node(e);
  }
}

}  // namespace tilewright::script
