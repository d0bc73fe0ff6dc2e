// tilewright.arith: the analyzer and the iteration maps, with TVM's names.

#include <limits>

#include "arith/engine.h"
#include "arith/int_set.h"
#include "arith/iter_map.h"
#include "arith/region_bound.h"
#include "arith/same_program.h"
#include "python/module.h"
#include "python/node_caster.h"

namespace tilewright::python {
namespace {

using arith::Analyzer;
using arith::IntSet;
using arith::IterMapLevel;

/// Iterators in each other: they are walked and destroyed by recursion.
constexpr int kMostIterators = 1000;

/// nanobind turns away None as an argument and in a list, but not inside a dict.
template <class H>
const H& defined(const H& node, const char* what) {
  if (!node.defined()) {
    throw Exception(
        argument_error("arith/none", std::string("None is not a ") + what, "pass an expression of tilewright.ir"));
  }
  return node;
}

/// The condition holds between __enter__ and __exit__.
class ConstraintScope {
 public:
  ConstraintScope(Analyzer& analyzer, Expr condition) : analyzer_(analyzer), condition_(std::move(condition)) {}
  void enter() {
    if (!mark_) mark_ = analyzer_.engine().enter(condition_);
  }
  void exit() {
    if (!mark_) return;
    if (!analyzer_.engine().is_innermost(*mark_)) {
      throw Exception(argument_error("arith/scope-order", "a condition ends while a later one still holds",
                                     "leave constraint scopes in the opposite order, as with statements do"));
    }
    analyzer_.engine().leave(*mark_);
    mark_.reset();
  }

 private:
  Analyzer& analyzer_;
  Expr condition_;
  std::optional<size_t> mark_;
};

IntSet set_from_python(nb::handle value) {
  if (nb::isinstance<IntSet>(value)) return nb::cast<IntSet>(value);
  Ref<Range> range;
  if (nb::try_cast(value, range) && range.defined()) return IntSet::of_range(range);
  throw Exception(
      argument_error("arguments/types", "a domain is a Range or an IntervalSet", "write tw.ir.Range(min, extent)"));
}

arith::Domains domains_from_python(const nb::dict& domains) {
  arith::Domains result;
  for (auto [key, value] : domains) {
    result[defined(nb::cast<Ref<Var>>(key), "variable")] = set_from_python(value);
  }
  return result;
}

arith::IterDomains inputs_from_python(const nb::dict& inputs) {
  arith::IterDomains result;
  for (auto [key, value] : inputs) {
    result.emplace_back(defined(nb::cast<Ref<Var>>(key), "variable"), defined(nb::cast<Ref<Range>>(value), "range"));
  }
  return result;
}

/// An end that is not known is float infinity, which compares with ints.
nb::object end_to_python(int64_t end) {
  if (end == arith::ConstIntBound::kPosInf) return nb::float_(std::numeric_limits<double>::infinity());
  if (end == arith::ConstIntBound::kNegInf) return nb::float_(-std::numeric_limits<double>::infinity());
  return nb::int_(end);
}

void bind_facts(nb::module_& m) {
  nb::class_<arith::ConstIntBound>(m, "ConstIntBound", "An interval of integers; an end that is not known is infinite.")
      .def_prop_ro("min_value", [](const arith::ConstIntBound& b) { return end_to_python(b.min_value); })
      .def_prop_ro("max_value", [](const arith::ConstIntBound& b) { return end_to_python(b.max_value); })
      .def("__contains__", &arith::ConstIntBound::contains)
      .def("__repr__", [](const arith::ConstIntBound& b) {
        auto end = [](int64_t value) { return nb::str(end_to_python(value)); };
        return nb::str("ConstIntBound[{}, {}]").format(end(b.min_value), end(b.max_value));
      });
  nb::class_<arith::ModularSet>(m, "ModularSet", "The integers base + k * coeff; coeff 0: base alone; 1: all integers.")
      .def_ro("coeff", &arith::ModularSet::coeff)
      .def_ro("base", &arith::ModularSet::base)
      .def("__repr__",
           [](const arith::ModularSet& s) { return nb::str("ModularSet(coeff={}, base={})").format(s.coeff, s.base); });
  nb::class_<IntSet>(m, "IntervalSet", "All integers from min_value to max_value; None is an open end.")
      .def(
          "__init__",
          [](IntSet* self, const Expr& min, const Expr& max) { new (self) IntSet(IntSet::interval(min, max)); },
          "min_value"_a.none(), "max_value"_a.none())
      .def_prop_ro("min_value", [](const IntSet& s) { return node_to_python(s.min); })
      .def_prop_ro("max_value", [](const IntSet& s) { return node_to_python(s.max); })
      .def(
          "is_nothing", [](const IntSet& s) { return s.is_nothing; }, "No integer is a member.")
      .def("is_everything", &IntSet::is_everything, "Nothing is known.")
      .def("__repr__", [](const IntSet& s) {
        if (s.is_nothing) return nb::str("IntervalSet(nothing)");
        return nb::str("IntervalSet[{}, {}]").format(node_to_python(s.min), node_to_python(s.max));
      });
}

void bind_analyzer(nb::module_& m) {
  nb::class_<ConstraintScope>(m, "ConstraintScope", "A condition that holds inside a with statement.")
      .def(
          "__enter__",
          [](ConstraintScope& self) -> ConstraintScope& {
            self.enter();
            return self;
          },
          nb::rv_policy::reference)
      .def(
          "__exit__", [](ConstraintScope& self, nb::handle, nb::handle, nb::handle) { self.exit(); }, "type"_a.none(),
          "value"_a.none(), "traceback"_a.none());
  nb::class_<Analyzer>(m, "Analyzer",
                       "Facts about integer variables, and what follows from them: intervals, residues, simpler forms, "
                       "proofs. int32 and int64\narithmetic is taken not to overflow; other integer types wrap.")
      .def(nb::init<>())
      .def(
          "bind",
          [](Analyzer& self, const Ref<Var>& var, const NodeRef& value) {
            if (value.is<Range>()) return self.bind(var, value.borrow<Range>());
            if (value.sort() != Sort::kExpr)
              throw Exception(argument_error("arguments/types", "a variable is bound to a Range or an expression",
                                             "write tw.ir.Range(min, extent)"));
            self.bind(var, Expr(value));
          },
          "var"_a, "value"_a, "From now on the variable is in the Range, or stands for the expression.")
      .def("assume", &Analyzer::assume, "condition"_a, "From now on the condition holds.")
      .def(
          "constraint_scope", [](Analyzer& self, const Expr& e) { return ConstraintScope(self, e); }, "condition"_a,
          nb::keep_alive<0, 1>(), "The condition holds inside a with statement.")
      .def("const_int_bound", &Analyzer::const_int_bound, "expr"_a,
           "An interval that holds every value of the expression.")
      .def("modular_set", &Analyzer::modular_set, "expr"_a, "A residue class that holds every value of the expression.")
      .def("simplify", &Analyzer::simplify, "expr"_a,
           "The same value in a simpler form; the same node when there is nothing to do.")
      .def("can_prove", &Analyzer::can_prove, "condition"_a,
           "Whether the condition is proved to hold. False does not mean that it fails.")
      .def("can_prove_equal", &Analyzer::can_prove_equal, "lhs"_a, "rhs"_a,
           "Whether both are proved to have the same value.")
      .def("can_prove_less", &Analyzer::can_prove_less, "lhs"_a, "rhs"_a, "Whether lhs < rhs is proved.")
      .def("can_prove_greater_equal", &Analyzer::can_prove_greater_equal, "expr"_a, "lower_bound"_a,
           "Whether expr >= lower_bound is proved.")
      .def(
          "int_set",
          [](Analyzer& self, const Expr& e, const nb::dict& domains) {
            return arith::eval_set(e, domains_from_python(domains), self);
          },
          "expr"_a, "dom_map"_a,
          "The interval of values while the variables of dom_map run over their Range or IntervalSet.");
}

void bind_iter_map_nodes(nb::module_& m) {
  nb::enum_<IterMapLevel>(m, "IterMapLevel", "What detect_iter_map demands of a map.")
      .value("Bijective", IterMapLevel::kBijective, "Each point of the box of indices is reached exactly once.")
      .value("Surjective", IterMapLevel::kSurjective, "Each point is reached.")
      .value("NoCheck", IterMapLevel::kNoCheck, "Only the form is recognized.");
  nb::class_<arith::IterMark>(m, "IterMark", "An iterator: var - min, or a sum; it runs over [0, extent).")
      .def(
          "__init__",
          [](arith::IterMark* self, const nb::object& source, const Expr& extent) {
            arith::IterMark mark;
            if (nb::isinstance<arith::IterSumExpr>(source)) {
              mark.sum = nb::cast<arith::IterSumExpr>(source);
              for (const auto& split : mark.sum->args) mark.depth = std::max(mark.depth, split.source->depth + 1);
              if (mark.depth > kMostIterators) {
                throw Exception(argument_error(
                    "arith/too-deep", "iterators nest deeper than " + std::to_string(kMostIterators) + " levels",
                    "normalize_iter_map_to_expr() makes an expression of some of them"));
              }
            } else {
              mark.var = defined(nb::cast<Ref<Var>>(source), "variable");
              mark.min = zero(mark.var.dtype());
            }
            mark.extent = extent;
            new (self) arith::IterMark(std::move(mark));
          },
          "source"_a, "extent"_a, "Over [0, extent): a variable, or a sum.",
          nb::sig("def __init__(self, source: Var | IterSumExpr, extent: ExprLike) -> None"))
      .def_prop_ro(
          "source",
          [](const arith::IterMark& s) {
            return s.sum ? nb::cast(*s.sum) : node_to_python(is_const_int(s.min, 0) ? Expr(s.var) : s.var - s.min);
          },
          "The sum, or var - min.", nb::sig("def source(self) -> IterSumExpr | Expr"))
      .def_prop_ro("var", [](const arith::IterMark& s) { return node_to_python(s.var); })
      .def_prop_ro("min", [](const arith::IterMark& s) { return node_to_python(s.min); })
      .def_ro("sum", &arith::IterMark::sum)
      .def_ro("extent", &arith::IterMark::extent);
  nb::class_<arith::IterSplitExpr>(m, "IterSplitExpr", "source // lower_factor % extent * scale.")
      .def(
          "__init__",
          [](arith::IterSplitExpr* self, const arith::IterMark& source, const Expr& lower_factor, const Expr& extent,
             const Expr& scale) {
            new (self) arith::IterSplitExpr{std::make_shared<arith::IterMark>(source), lower_factor, extent, scale};
          },
          "source"_a, "lower_factor"_a, "extent"_a, "scale"_a)
      .def_prop_ro("source", [](const arith::IterSplitExpr& s) { return *s.source; })
      .def_ro("lower_factor", &arith::IterSplitExpr::lower_factor)
      .def_ro("extent", &arith::IterSplitExpr::extent)
      .def_ro("scale", &arith::IterSplitExpr::scale);
  nb::class_<arith::IterSumExpr>(m, "IterSumExpr", "The sum of args, most significant first, plus base.")
      .def(
          "__init__",
          [](arith::IterSumExpr* self, const std::vector<arith::IterSplitExpr>& args, const Expr& base) {
            new (self) arith::IterSumExpr{args, base};
          },
          "args"_a, "base"_a)
      .def_ro("args", &arith::IterSumExpr::args)
      .def_ro("base", &arith::IterSumExpr::base);
  nb::class_<arith::IterMapResult>(m, "IterMapResult", "The indices as sums of splits; empty when there are errors.")
      .def_ro("indices", &arith::IterMapResult::indices)
      .def_ro("errors", &arith::IterMapResult::errors);
  nb::class_<arith::Division>(m, "Division", "An index as outer * inner_extent + inner.")
      .def_ro("outer", &arith::Division::outer)
      .def_ro("inner", &arith::Division::inner)
      .def_ro("outer_extent", &arith::Division::outer_extent)
      .def_ro("inner_extent", &arith::Division::inner_extent);
  nb::class_<arith::SubspaceDivision>(m, "SubspaceDivision", "Indices between outer and inner loops.")
      .def_ro("indices", &arith::SubspaceDivision::indices)
      .def_ro("outer_predicate", &arith::SubspaceDivision::outer_predicate)
      .def_ro("inner_predicate", &arith::SubspaceDivision::inner_predicate);
}

void bind_iter_maps(nb::module_& m) {
  m.def(
      "detect_iter_map",
      [](const std::vector<Expr>& indices, const nb::dict& inputs, const Expr& predicate, IterMapLevel level,
         Analyzer* analyzer, bool simplify_trivial_iterators) {
        Analyzer local;
        return arith::detect_iter_map(indices, inputs_from_python(inputs), predicate, level,
                                      analyzer ? *analyzer : local, !simplify_trivial_iterators);
      },
      "indices"_a, "input_iters"_a, "predicate"_a = nb::none(), "check_level"_a = IterMapLevel::kSurjective,
      "analyzer"_a = nb::none(), "simplify_trivial_iterators"_a = true);
  m.def(
      "normalize_iter_map_to_expr",
      [](const arith::IterSumExpr& sum) {
        Analyzer analyzer;
        return analyzer.simplify(arith::normalize_iter_map_to_expr(sum, analyzer));
      },
      "expr"_a);
  m.def(
      "iter_map_simplify",
      [](const std::vector<Expr>& indices, const nb::dict& inputs, const Expr& predicate, IterMapLevel level) {
        Analyzer analyzer;
        return arith::iter_map_simplify(indices, inputs_from_python(inputs), predicate, level, analyzer);
      },
      "indices"_a, "input_iters"_a, "predicate"_a = nb::none(), "check_level"_a = IterMapLevel::kSurjective);
  m.def(
      "inverse_affine_iter_map",
      [](const std::vector<arith::IterSumExpr>& map, const std::vector<Expr>& outputs) {
        if (map.size() != outputs.size()) {
          throw Exception(argument_error("arith/outputs",
                                         "an iteration map of " + std::to_string(map.size()) +
                                             " indices is inverted with " + std::to_string(outputs.size()) + " outputs",
                                         "give one output for each index of the map"));
        }
        Analyzer analyzer;
        nb::dict result;
        for (const auto& [var, value] : arith::inverse_affine_iter_map(map, outputs, analyzer)) {
          result[node_to_python(var)] = node_to_python(value);
        }
        return result;
      },
      "iter_map"_a, "outputs"_a);
  m.def(
      "region_lower_bound",
      [](const arith::Region& region, const nb::dict& inputs, const Expr& predicate) {
        Analyzer analyzer;
        return arith::region_lower_bound(region, inputs_from_python(inputs), predicate, analyzer);
      },
      "region"_a, "input_iters"_a, "predicate"_a = nb::none());
  m.def(
      "region_upper_bound",
      [](const arith::Region& region, const nb::dict& inputs, const Expr& predicate) {
        Analyzer analyzer;
        return arith::relax_region(region, domains_from_python(inputs), analyzer, predicate);
      },
      "region"_a, "input_iters"_a, "predicate"_a = nb::none());
  m.def(
      "subspace_divide",
      [](const std::vector<Expr>& indices, const nb::dict& inputs, const std::vector<Ref<Var>>& sub_iters,
         const Expr& predicate, IterMapLevel level) {
        Analyzer analyzer;
        return arith::subspace_divide(indices, inputs_from_python(inputs), sub_iters, predicate, level, analyzer,
                                      nullptr, arith::SubspaceForm::kGeneral);
      },
      "bindings"_a, "input_iters"_a, "sub_iters"_a, "predicate"_a = nb::none(),
      "check_level"_a = IterMapLevel::kSurjective);
}

}  // namespace

void bind_arith(nb::module_& m) {
  m.def(
      "mismatch_beyond_indices",
      [](const NodeRef& lhs, const NodeRef& rhs, bool map_free_vars) {
        arith::SameProgram found = arith::compare_up_to_indices(lhs, rhs, map_free_vars);
        nb::object mismatch = nb::none();
        if (found.mismatch) {
          mismatch =
              nb::make_tuple(found.mismatch->path, found.mismatch->reason, found.mismatch->lhs, found.mismatch->rhs);
        }
        return nb::make_tuple(mismatch, found.functions);
      },
      "lhs"_a, "rhs"_a, "map_free_vars"_a = false,
      "Where two programs differ by more than the way integer index expressions are written, as structural_mismatch "
      "reports it, or\nNone; and in how many functions expressions had to be proved equal.");
  bind_facts(m);
  bind_analyzer(m);
  bind_iter_map_nodes(m);
  bind_iter_maps(m);
}

}  // namespace tilewright::python
