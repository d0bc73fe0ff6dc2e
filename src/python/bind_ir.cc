// Node classes derived from the field lists, and the operators of expressions.

#include <unordered_set>

#include "ir/fold.h"
#include "ir/json.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "python/fields.h"
#include "python/module.h"
#include "python/operand.h"
#include "python/running_vars.h"
#include "support/ranges.h"

namespace tilewright::python {

/// An integer of Python that int64 or uint64 holds.
struct WideInteger {
  int64_t number = 0;  ///< or the bits of an unsigned one
  bool is_negative = false;
  std::string str() const {
    return is_negative ? std::to_string(number) : std::to_string(static_cast<uint64_t>(number));
  }
};

}  // namespace tilewright::python

namespace nanobind::detail {

template <>
struct type_caster<tilewright::python::WideInteger> {
  NB_TYPE_CASTER(tilewright::python::WideInteger, const_name("int"))
  bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
    make_caster<int64_t> with_sign;
    if (with_sign.from_python(source, flags, cleanup)) {
      value = {with_sign.value, with_sign.value < 0};
      return true;
    }
    make_caster<uint64_t> without;
    if (!without.from_python(source, flags, cleanup)) return false;
    value = {static_cast<int64_t>(without.value), false};
    return true;
  }
};

}  // namespace nanobind::detail

namespace tilewright::python {

template <>
struct FieldConversion<&TensorData::bytes> {
  using type = nb::bytes;
  static std::string from_python(nb::bytes&& value) { return {value.c_str(), value.size()}; }
  static nb::object to_python(const std::string& field) { return nb::bytes(field.data(), field.size()); }
};

/// A number keeps its digits for the cast.
template <>
struct FieldConversion<&Cast::value> {
  using type = Operand;
  static Expr from_python(Operand&& value) { return value.node.defined() ? exact(value) : Expr(); }
  static nb::object to_python(const Expr& field) { return node_to_python(field); }
};

namespace {

/// Returns the operands of a binary node: numbers are converted to a common type, others are unchanged.
std::pair<Expr, Expr> values_of_node(Kind kind, const Operand& a, const Operand& b) {
  if (!a.node.defined() || !b.node.defined()) return {Expr(a.node), Expr(b.node)};
  if (auto numbers = meet_numbers(kind, a, b)) return *std::move(numbers);
  return {settled(a), settled(b)};
}

/// The error for an integer of Python that is no value of an integer type.
Exception beyond_type(const std::string& number, DataType type) {
  const int bits = type.bits - type.is_int();
  const uint64_t last = ~uint64_t{0} >> (64 - bits);
  const std::string first = type.is_int() ? "-" + std::to_string(last + 1) : "0";
  return Exception(script_error("script/constant", number + " is no " + type.str(),
                                "these are from " + first + " to " + std::to_string(last)));
}

/// Unsigned constants of 64 bits are stored as their bits; Python sees the number.
nb::int_ number_of(const Ref<IntImm>& node) {
  return node->dtype.is_uint() ? nb::int_(static_cast<uint64_t>(node->value)) : nb::int_(node->value);
}

void bind_integer(nb::class_<NodeOf<IntImm>, ExprNode>& cls) {
  cls.def_prop_ro("value", &number_of);
  cls.def(nb::new_([](DataType dtype, const WideInteger& value) {
            const bool is_large = value.number < 0 && !value.is_negative;
            const bool is_wrong = dtype == DataType::uint(64) ? value.is_negative : is_large && dtype.is_integral();
            if (is_wrong) throw beyond_type(value.str(), dtype);
            return make<IntImm>({dtype, value.number});
          }),
          "dtype"_a.none() = DataType::void_(), "value"_a.none() = 0);
}

template <class T>
constexpr bool kHasTwoOperands = requires(T node) {
  node.a;
  node.b;
};

template <class T, class Class, auto... M>
void bind_fields(Class& cls, Fields<M...>) {
  (cls.def_prop_ro(field_name<M>(), [](const NodeOf<T>& self) { return FieldConversion<M>::to_python(self.data.*M); }),
   ...);
  cls.attr("__match_args__") = nb::make_tuple(detail::kMemberName<M>...);

  if constexpr (kHasTwoOperands<T>) {
    cls.def(nb::new_([](const Operand& a, const Operand& b) {
              auto [left, right] = values_of_node(KindOf<T>::kind, a, b);
              return make<T>({std::move(left), std::move(right)});
            }),
            "a"_a.none() = nb::none(), "b"_a.none() = nb::none());
    return;
  }
  if constexpr (std::is_same_v<T, Select>) {
    cls.def(nb::new_([](Expr condition, const Operand& true_value, const Operand& false_value) {
              auto [yes, no] = values_of_node(Kind::kSelect, true_value, false_value);
              return make<T>({std::move(condition), std::move(yes), std::move(no)});
            }),
            "condition"_a.none() = nb::none(), "true_value"_a.none() = nb::none(), "false_value"_a.none() = nb::none());
    return;
  }
  if constexpr (std::is_same_v<T, IntImm>) return bind_integer(cls);
  T defaults{};
  // One argument a field, in the order of the list; an omitted handle is None, which make() refuses where it matters.
  cls.def(nb::new_([](typename FieldConversion<M>::type... values) {
            T data{};
            ((data.*M = FieldConversion<M>::from_python(std::move(values))), ...);
            return make(std::move(data));
          }),
          nb::arg(field_name<M>()).none() = FieldConversion<M>::to_python(defaults.*M)...);
}

template <class T, class Base>
void bind_node(nb::module_& m, const char* name) {
  nb::class_<NodeOf<T>, Base> cls(m, name);
  bind_fields<T>(cls, typename T::Members{});
}

// ---- operators

/// `K` is the kind of node that F makes, where numbers are parts of it (ir/literal.h); `I` the intrinsic that it calls.
template <Expr (*F)(Expr, Expr), Kind K, Intrinsic I = Intrinsic::kUnknown>
Expr apply(const Operand& a, const Operand& b) {
  if (K == Kind::kDiv && is_integers(a) && is_integers(b)) return apply<F, K, I>(float_of(a), float_of(b));
  if (auto parts = meet_numbers(K, a, b, I)) {
    if (parts->first.is<FloatImm>() && parts->second.is<FloatImm>()) {
      Expr folded = F(exact(parts->first), exact(parts->second));
      if (auto number = const_float(folded)) return Expr(number_of_python(*number).node);
    }
    const Expr part = parts->first;
    return still_number(F(std::move(parts->first), std::move(parts->second)), part);
  }
  auto [left, right] = meet(a, b);
  return F(std::move(left), std::move(right));
}

template <Expr (*F)(Expr, Expr), Kind K = Kind::kCall, Intrinsic I = Intrinsic::kUnknown>
void bind_operator(nb::class_<ExprNode, NodeBase>& cls, const char* name, const char* reflected) {
  cls.def(
      name,
      [](const Operand& self, nb::handle other) -> nb::object {
        Operand b;
        if (!operand_from_python(other, b) || !b.is_expr()) return nb::borrow(Py_NotImplemented);
        return node_to_python(apply<F, K, I>(self, b));
      },
      nb::is_operator());
  if (!reflected) return;
  cls.def(
      reflected,
      [](const Operand& self, nb::handle other) -> nb::object {
        Operand b;
        if (!operand_from_python(other, b) || !b.is_expr()) return nb::borrow(Py_NotImplemented);
        return node_to_python(apply<F, K, I>(b, self));
      },
      nb::is_operator());
}

Expr add(Expr a, Expr b) { return std::move(a) + std::move(b); }
Expr sub(Expr a, Expr b) { return std::move(a) - std::move(b); }
Expr mul(Expr a, Expr b) { return std::move(a) * std::move(b); }
template <Intrinsic I>
Expr integer_call(Expr a, Expr b) {
  promote(a, b);
  if (auto folded = fold_call(I, a.dtype(), {a, b})) return *folded;
  return call(I, {std::move(a), std::move(b)});
}
template <Intrinsic I>
void bind_bit_operator(nb::class_<ExprNode, NodeBase>& cls, const char* name, const char* reflected) {
  bind_operator<integer_call<I>, Kind::kCall, I>(cls, name, reflected);
}
Expr power(Expr a, Expr b) {
  promote(a, b);
  return call(Intrinsic::k_pow, {std::move(a), std::move(b)});
}
Expr bit_and(Expr a, Expr b) {
  if (a.dtype().is_bool() && b.dtype().is_bool()) return logical_and(std::move(a), std::move(b));
  return integer_call<Intrinsic::k_bitwise_and>(std::move(a), std::move(b));
}
Expr bit_or(Expr a, Expr b) {
  if (a.dtype().is_bool() && b.dtype().is_bool()) return logical_or(std::move(a), std::move(b));
  return integer_call<Intrinsic::k_bitwise_or>(std::move(a), std::move(b));
}

/// Whether two expressions are the same node. Nothing if that does not decide whether their values are equal: if a
/// value changes while the program runs, or may be NaN, which does not equal itself.
std::optional<bool> is_same_node(const Expr& a, const Expr& b) {
  const bool is_one = a == b;
  if (is_one && !a.dtype().is_float()) return true;
  if (varies(a) || varies(b)) return std::nullopt;
  return is_one;
}

/// Returns the meaning of `if expr:`: constants have a truth value, `a == b` and `a != b` compare identity (so that `v
/// in list` works, and scripts may ask whether a size is 1) unless they compare what varies, anything else is an error.
bool truth(const Expr& e) {
  if (auto v = const_int(e)) return *v != 0;
  if (auto v = const_float(e)) return *v != 0;
  if (const EQ* c = e.as<EQ>()) {
    if (auto same = is_same_node(c->a, c->b)) return *same;
  }
  if (const NE* c = e.as<NE>()) {
    if (auto same = is_same_node(c->a, c->b)) return !*same;
  }
  throw Exception(argument_error("ir/truth", "an expression of the program has no truth value while it is being built",
                                 "use T.if_then_else, T.Select, T.And / T.Or, or `if` inside the script"));
}

void bind_expr_operators(nb::class_<ExprNode, NodeBase>& cls) {
  bind_operator<add, Kind::kAdd>(cls, "__add__", "__radd__");
  bind_operator<sub, Kind::kSub>(cls, "__sub__", "__rsub__");
  bind_operator<mul, Kind::kMul>(cls, "__mul__", "__rmul__");
  bind_operator<div, Kind::kDiv>(cls, "__truediv__", "__rtruediv__");
  bind_operator<floordiv, Kind::kFloorDiv>(cls, "__floordiv__", "__rfloordiv__");
  bind_operator<floormod, Kind::kFloorMod>(cls, "__mod__", "__rmod__");
  bind_operator<power>(cls, "__pow__", "__rpow__");
  bind_operator<bit_and, Kind::kCall, Intrinsic::k_bitwise_and>(cls, "__and__", "__rand__");
  bind_operator<bit_or, Kind::kCall, Intrinsic::k_bitwise_or>(cls, "__or__", "__ror__");
  bind_bit_operator<Intrinsic::k_bitwise_xor>(cls, "__xor__", "__rxor__");
  bind_bit_operator<Intrinsic::k_shift_left>(cls, "__lshift__", "__rlshift__");
  bind_bit_operator<Intrinsic::k_shift_right>(cls, "__rshift__", "__rrshift__");
  bind_operator<eq, Kind::kEQ>(cls, "__eq__", nullptr);
  bind_operator<ne, Kind::kNE>(cls, "__ne__", nullptr);
  bind_operator<lt, Kind::kLT>(cls, "__lt__", nullptr);
  bind_operator<le, Kind::kLE>(cls, "__le__", nullptr);
  bind_operator<gt, Kind::kGT>(cls, "__gt__", nullptr);
  bind_operator<ge, Kind::kGE>(cls, "__ge__", nullptr);
  // Multiply by -1, as TVM's Python does; for floats 0 - x would lose the sign of zero.
  cls.def("__neg__", [](const Operand& self) {
    if (self.is_number)
      return apply<mul, Kind::kMul>(self, is_integers(self) ? integer_of_python(-1) : number_of_python(-1));
    const Expr value(self.node);
    return value.dtype().is_uint() ? -value : value * constant(value.dtype(), int64_t{-1});
  });
  cls.def("__pos__", [](const Operand& self) { return Expr(self.node); });
  cls.def("__invert__", [](const Operand& number) {
    constexpr Intrinsic kXor = Intrinsic::k_bitwise_xor;
    if (is_integers(number)) return apply<integer_call<kXor>, Kind::kCall, kXor>(number, integer_of_python(-1));
    const Expr self = settled(number);
    return self.dtype().is_bool() ? logical_not(self) : call(Intrinsic::k_bitwise_not, {self});
  });
  cls.def("__hash__", [](const ExprNode& self) { return reinterpret_cast<uintptr_t>(&self) >> 4; });
  cls.def("__bool__", &truth);
  cls.def("astype", [](const Operand& self, DataType dtype) { return cast(dtype, self); }, "dtype"_a);
  cls.def_ro("dtype", &ExprNode::dtype);
  // NumPy's scalars have the priority -1e6 and would compute with what they hold, which has no type; its arrays have 0.
  cls.attr("__array_priority__") = -1.0;
}

// ---- traversal for Python: one call per node, for a user's own passes

std::vector<NodeRef> children_of(const NodeRef& node) {
  std::vector<NodeRef> children;
  for_each_child(node, [&](const NodeRef& child, Role) { children.push_back(child); });
  return children;
}

/// The first child comes off the stack first.
void push_children(const NodeRef& node, std::vector<NodeRef>& stack) {
  std::vector<NodeRef> children = children_of(node);
  stack.insert(stack.end(), std::make_move_iterator(children.rbegin()), std::make_move_iterator(children.rend()));
}

void visit_python(const NodeRef& root, nb::callable fn) {
  std::vector<NodeRef> stack{root};
  while (!stack.empty()) {
    NodeRef node = std::move(stack.back());
    stack.pop_back();
    fn(node);
    push_children(node, stack);
  }
}

/// Children before their node, every node once.
void post_order_visit_python(const NodeRef& root, nb::callable fn) {
  std::unordered_set<NodeRef> seen;
  std::vector<std::pair<NodeRef, bool>> stack{{root, false}};
  while (!stack.empty()) {
    auto [node, ready] = std::move(stack.back());
    stack.pop_back();
    if (ready) {
      fn(node);
      continue;
    }
    if (!seen.insert(node).second) continue;
    std::vector<NodeRef> children = children_of(node);
    stack.emplace_back(std::move(node), true);
    for (NodeRef& child : reversed(children)) stack.emplace_back(std::move(child), false);
  }
}

/// A node before its children, every node once; the children of a node for which `fn` gives False are skipped.
void pre_order_visit_python(const NodeRef& root, nb::callable fn) {
  std::unordered_set<NodeRef> seen;
  std::vector<NodeRef> stack{root};
  while (!stack.empty()) {
    NodeRef node = std::move(stack.back());
    stack.pop_back();
    if (!seen.insert(node).second || !nb::cast<bool>(fn(node))) continue;
    push_children(node, stack);
  }
}

struct PythonRewrite {
  nb::callable fn;
  std::unordered_map<NodeRef, NodeRef> buffers;
  NodeRef operator()(const NodeRef& node) {
    bool buffer = node.is<Buffer>();
    if (buffer) {
      if (auto* found = find_value(buffers, node)) return *found;
    }
    NodeRef after = detail::map_children(
        node, [](void* self, const NodeRef& child, Role) { return (*static_cast<PythonRewrite*>(self))(child); }, this);
    nb::object answer = fn(after);
    NodeRef result = answer.is_none() ? after : nb::cast<NodeRef>(answer);
    if (result.sort() != node.sort()) {
      throw Exception(argument_error(
          "ir/rewrite-sort",
          "the function given to rewrite returned " + kind_name(result.kind()) + " for " + kind_name(node.kind()),
          "return a node of the same sort (expression, statement, ...) or None to keep it"));
    }
    if (buffer) buffers.emplace(node, result);
    return result;
  }
};

NodeRef rewrite_python(const NodeRef& root, nb::callable fn) {
  if (root.depth() > kInlineDepth) {
    throw Exception(argument_error("ir/rewrite-depth", "this program is too deep for a rewrite in Python",
                                   "write the pass in C++"));
  }
  return PythonRewrite{std::move(fn), {}}(root);
}

/// Arithmetic and order of an iteration variable are those of its variable; `==` compares identity, as for all nodes
/// that are no expressions.
void bind_iter_var_operators() {
  nb::object expr = nb::borrow(nb::type<ExprNode>()), axis = nb::borrow(nb::type<NodeOf<IterVar>>());
  for (const char* name :
       {"add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"}) {
    for (const char* prefix : {"__", "__r"}) {
      std::string method = prefix + std::string(name) + "__";
      nb::setattr(axis, method.c_str(), nb::getattr(expr, method.c_str()));
    }
  }
  for (const char* method : {"__lt__", "__le__", "__gt__", "__ge__", "__neg__", "__pos__", "__invert__", "astype"}) {
    nb::setattr(axis, method, nb::getattr(expr, method));
  }
  nb::setattr(axis, "__array_priority__", nb::getattr(expr, "__array_priority__"));
}

void bind_functions(nb::module_& m) {
  m.def("structural_equal", &structural_equal, "lhs"_a, "rhs"_a, "map_free_vars"_a = false,
        "Whether two programs are the same up to the names of what they define.\n\nArgs:\n    lhs: a node.\n"
        "    rhs: another one.\n    map_free_vars: match free variables by their first occurrence, not by identity.");
  m.def(
      "structural_mismatch",
      [](const NodeRef& a, const NodeRef& b, bool map_free_vars) -> nb::object {
        auto found = find_mismatch(a, b, map_free_vars);
        if (!found) return nb::none();
        return nb::make_tuple(found->path, found->reason, found->lhs, found->rhs);
      },
      "Where two programs differ first: the path there, why, and the nodes of both sides; None where they are equal.");
  m.def(
      "structural_hash", [](const NodeRef& node) { return structural_hash(node).hex(); }, "node"_a,
      "32 hexadecimal digits, the same in every process; equal for programs that structural_equal() says are equal.");
  m.def("to_json", &to_json, "node"_a, "The node as JSON text; shared variables stay shared when it is read back.");
  m.def(
      "from_json",
      [](nb::str text) {
        Py_ssize_t size = 0;
        const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
        if (!data) {
          PyErr_Clear();
          throw Exception(script_error("json/syntax", "the text holds halves of characters (lone surrogates)",
                                       "only text written by to_json can be read"));
        }
        return from_json(std::string_view(data, static_cast<size_t>(size)));
      },
      "text"_a,
      "The node that to_json() wrote.\n\nRaises:\n    tilewright.ScriptError: the text is not IR in JSON form.");
  m.def(
      "renew_defs",
      [](const NodeRef& node) -> NodeRef {
        if (node.is<PrimFunc>()) return renew_defs(node.borrow<PrimFunc>());
        return renew_defs(Stmt(node));
      },
      "A copy that defines variables and buffers of its own: both can stand in one program.");
  m.def(
      "substitute",
      [](const NodeRef& node, nb::dict map) -> NodeRef {
        VarMap vars;
        for (auto [key, value] : map) vars.emplace(nb::cast<Ref<Var>>(key), nb::cast<Expr>(value));
        if (node.sort() == Sort::kExpr) return substitute(Expr(node), vars);
        if (node.is<PrimFunc>()) return substitute(node.borrow<PrimFunc>(), vars);
        return substitute(Stmt(node), vars);
      },
      "node"_a, "map"_a,
      "The node with expressions in place of variables.\n\nArgs:\n    node: an expression, a statement or a function.\n"
      "    map: variables, and what stands for each.");
  m.def("visit", &visit_python, "root"_a, "fn"_a,
        "Calls the function with each node, parents before their children; what it returns does not matter.");
  m.def("post_order_visit", &post_order_visit_python, "stmt"_a, "fvisit"_a,
        "Calls the function with each node once, after its children.");
  m.def("pre_order_visit", &pre_order_visit_python, "stmt"_a, "fvisit"_a,
        "Calls the function with each node once, before its children, which it skips by returning False.");
  m.def(
      "rewrite", &rewrite_python, "root"_a, "fn"_a,
      "A program in which the function replaced nodes, children before their parents: it returns another node, or None "
      "for the one that it got.");
  m.def("as_attribute", &value_from_python, "value"_a.none(),
        "The node that a value of Python becomes in the attributes of functions and blocks.");
  m.def("register_source", &register_source);
  m.def(
      "intern_span",
      [](const std::string& file, int line, int column, int end_line, int end_column, SpanId parent) {
        return intern_span({file, line, column, end_line, end_column, parent});
      },
      "file"_a, "line"_a, "column"_a, "end_line"_a, "end_column"_a, "parent"_a = 0);
  m.def("span_of", [](SpanId id) {
    Span s = span_of(id);
    return nb::make_tuple(s.file, s.line, s.column, s.end_line, s.end_column, s.parent);
  });
  m.def("render_span", &render_span);
  m.def(
      "at_span_of",
      [](const NodeRef& node, const nb::callable& work) {
        SpanScope at(node.span());
        return nb::object(work());
      },
      "node"_a, "work"_a, "What the function returns. Nodes that it makes come from the line of the node.");
}

void bind_builders(nb::module_& m) {
  m.def(
      "call_intrinsic",
      [](const std::string& name, std::vector<Expr> args) {
        Intrinsic intrinsic = find_intrinsic(name);
        if (intrinsic == Intrinsic::kUnknown)
          throw Exception(argument_error("ir/intrinsic-name", "no intrinsic is called '" + name + "'",
                                         "the table of intrinsics in the documentation lists them"));
        return call(intrinsic, std::move(args));
      },
      "name"_a, "args"_a,
      "A call of an intrinsic by its name; the table of intrinsics in the documentation lists them.\n\nRaises:\n"
      "    tilewright.ArgumentError: there is none of that name, or it does not take these arguments.");
  m.def(
      "cast", [](DataType dtype, const Operand& value) { return cast(dtype, value); }, "dtype"_a, "value"_a,
      "The value as another data type; the value itself where it has that type.");
  m.def(
      "const",
      [](nb::object value, std::optional<DataType> dtype) -> Expr {
        Operand number;
        if (!operand_from_python(value, number) || !number.is_expr())
          throw Exception(argument_error("arguments/types", "a constant is a number",
                                         "name the type too, as in const(1.5, \"float32\")"));
        if (!dtype) return settled(number);
        if (std::optional<IntegerRange> integers = integers_of(number);
            dtype->is_integral() && !dtype->is_bool() &&
            (number.is_huge || (integers && !holds(dtype->element(), *integers))))
          throw Exception(beyond_type(nb::str(value).c_str(), *dtype));
        return cast(*dtype, number);
      },
      "value"_a, "dtype"_a = nb::none(), "A constant: of int32, float32 or bool where no data type is given.");
#define TW_FUNCTION(name, function, kind, doc) \
  m.def(name, [](const Operand& a, const Operand& b) { return apply<function, kind>(a, b); }, "a"_a, "b"_a, doc)
  TW_FUNCTION("truncdiv", truncdiv, Kind::kCall, "The quotient of integers, rounded towards zero.");
  TW_FUNCTION("truncmod", truncmod, Kind::kCall, "What truncdiv() leaves: of the sign of the dividend.");
  TW_FUNCTION("floordiv", floordiv, Kind::kFloorDiv, "The quotient of integers, rounded down.");
  TW_FUNCTION("floormod", floormod, Kind::kFloorMod, "What floordiv() leaves: of the sign of the divisor.");
  TW_FUNCTION("ceildiv", ceildiv, Kind::kCall, "The quotient of integers, rounded up.");
#undef TW_FUNCTION
  m.def(
      "min", [](const Operand& a, const Operand& b) { return least(a, b, false); }, "a"_a, "b"_a, "The smaller value.");
  m.def("max", [](const Operand& a, const Operand& b) { return least(a, b, true); }, "a"_a, "b"_a, "The larger value.");
  m.def("logical_and", &logical_and, "a"_a, "b"_a, "Whether both hold.");
  m.def("logical_or", &logical_or, "a"_a, "b"_a, "Whether one of them holds.");
  m.def("logical_not", &logical_not, "Whether it does not hold.");
  m.def(
      "select",
      [](Expr c, const Operand& t, const Operand& f) {
        auto [yes, no] = meet_alternatives(t, f);
        return select(std::move(c), std::move(yes), std::move(no));
      },
      "The second value where the condition holds, else the third; both are computed.");
  m.def(
      "if_then_else",
      [](Expr c, const Operand& t, const Operand& f) {
        auto [yes, no] = meet_alternatives(t, f);
        return if_then_else(std::move(c), std::move(yes), std::move(no));
      },
      "The second value where the condition holds, else the third; the other one is not computed, so it may read what "
      "is not there.");
  m.def("min_value", &min_value, "dtype"_a, "The least finite value of a data type.");
  m.def("max_value", &max_value, "dtype"_a, "The greatest finite value of a data type.");
  m.def("decl_buffer", &decl_buffer, "shape"_a, "dtype"_a = "float32", "name"_a = "buffer", "scope"_a = "global",
        "A buffer without strides; a parameter or an allocation makes it one of a program.");
  m.def("seq", &seq, "Statements one after the other, as one.");
  m.def("as_module", &as_module, "The function as the only one of a module.");
  m.def("with_function", &with_function,
        "The module with a function under that name, added or in place of the one that it has.");
}

void bind_enums(nb::module_& m) {
  nb::enum_<ForKind>(m, "ForKind", nb::is_arithmetic())
      .value("SERIAL", ForKind::kSerial)
      .value("PARALLEL", ForKind::kParallel)
      .value("VECTORIZED", ForKind::kVectorized)
      .value("UNROLLED", ForKind::kUnrolled)
      .value("THREAD_BINDING", ForKind::kThreadBinding);
  nb::enum_<IterType>(m, "IterType", nb::is_arithmetic())
      .value("DATA_PAR", IterType::kDataPar)
      .value("THREAD_INDEX", IterType::kThreadIndex)
      .value("COMM_REDUCE", IterType::kCommReduce)
      .value("ORDERED", IterType::kOrdered)
      .value("OPAQUE", IterType::kOpaque)
      .value("UNROLLED", IterType::kUnrolled)
      .value("VECTORIZED", IterType::kVectorized)
      .value("PARALLELIZED", IterType::kParallelized)
      .value("TENSORIZED", IterType::kTensorized);
  nb::enum_<BufferKind>(m, "BufferKind", nb::is_arithmetic())
      .value("DEFAULT", BufferKind::kDefault)
      .value("AUTO_BROADCAST", BufferKind::kAutoBroadcast);
}

Ref<Module> without_function(Module module, const std::string& name) {
  std::erase_if(module.functions, [&](const auto& entry) { return entry.first == name; });
  return make(std::move(module));
}

}  // namespace

/// Adds a function to a module in place, or removes the one of that name. Shared nodes are immutable, so nothing but
/// Python may refer to the module.
void set_function(const Ref<Module>& module, const std::string& name, const Func& func) {
  // One count belongs to Python's object, one to the argument.
  if (module.get()->use_count() > 2) {
    throw nb::type_error(
        "this module is that of a schedule, which would change with it; take a copy first: "
        "tvm.IRModule(dict(sch.mod.functions.items()))");
  }
  const Ref<Module> filled = func.defined() ? with_function(module, name, func) : without_function(*module, name);
  const_cast<Module&>(*module) = *filled;
  const_cast<NodeBase*>(module.get())->depth = filled.get()->depth;
}

void bind_ir(nb::module_& m) {
  bind_enums(m);
  m.def("set_function", &set_function, "module"_a, "name"_a, "func"_a.none(),
        "Put a function into a module that nothing but Python holds; None removes the one of that name.\n\n"
        "Raises:\n    TypeError: something else does.");
  nb::class_<NodeBase> node(m, "Node", nb::dynamic_attr());
  node.def_ro("span", &NodeBase::span);
  node.def_ro("depth", &NodeBase::depth);
  node.def("same_as", [](const NodeRef& self, const NodeRef& other) { return self == other; }, "other"_a.none());
  node.def(
      "__eq__",
      [](const NodeRef& self, nb::handle other) { return NodeRef(nb::detail::get_node(other, 0, nullptr)) == self; },
      nb::arg().none());
  node.def("__hash__", [](const NodeBase& self) { return reinterpret_cast<uintptr_t>(&self) >> 4; });
  node.def("__reduce__", [](nb::handle self) {
    return nb::make_tuple(nb::module_::import_("tilewright.ir").attr("load_json"),
                          nb::make_tuple(to_json(nb::cast<NodeRef>(self))));
  });
  nb::class_<ExprNode, NodeBase> expr(m, "Expr");
  nb::class_<StmtNode, NodeBase>(m, "Stmt");
  nb::class_<TypeNode, NodeBase>(m, "Type");
  nb::class_<FuncNode, NodeBase>(m, "Func");
  nb::class_<AuxNode, NodeBase>(m, "Aux");
  bind_expr_operators(expr);
#define X(name, sort, ...) bind_node<name, sort##Node>(m, #name);
#include "ir/kinds.def"
#undef X
  bind_iter_var_operators();
  for (const char* method : {"__int__", "__index__"}) add_method<IntImm>(method, &number_of);
  add_method<IntImm>("__float__", [](const Ref<IntImm>& self) {
    return self->dtype.is_uint() ? static_cast<double>(static_cast<uint64_t>(self->value))
                                 : static_cast<double>(self->value);
  });
  add_method<FloatImm>("__float__", [](const Ref<FloatImm>& self) { return self->value; });
  add_method<Dict>("__getitem__", [](const Ref<Dict>& self, const std::string& key) {
    NodeRef value = self->items.get(key);
    if (!value.defined()) throw nb::key_error(key.c_str());
    return value_to_python(value);
  });
  add_method<PrimFunc>("__call__", [](const Ref<PrimFunc>& self, nb::args, nb::kwargs) {
    const NodeRef symbol = self->attrs.get("global_symbol");
    const StringImm* name = symbol.as<StringImm>();
    throw Exception(
        argument_error("ir/not-compiled",
                       "the program '" + (name ? name->value : "main") + "' is not a kernel yet, it cannot be called",
                       "compile it first: kernel = tw.compile(" + (name ? name->value : "func") + ")"));
  });
  bind_functions(m);
  bind_builders(m);
  bind_node_methods(m);
}

}  // namespace tilewright::python
