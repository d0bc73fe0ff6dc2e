#include "schedule/match_description.h"

#include <optional>

#include "analysis/brief.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

using analysis::brief;

class Matcher {
 public:
  explicit Matcher(arith::Analyzer& analyzer) : analyzer_(analyzer) {}

  std::variant<Parts, Difference> run(const Stmt& body, const Stmt& desc) {
    if (!match(body, desc)) return *difference_;
    // Loops inside are unknown around the block, so replace their variables.
    for (auto& [said, part] : parts_) {
      for (Expr& start : part.start) start = analyzer_.simplify(substitute(start, units_));
    }
    return std::move(parts_);
  }

 private:
  bool differ(std::string why, const NodeRef& where) {
    if (!difference_) difference_ = {std::move(why), where};
    return false;
  }

  // ---- statements

  bool match(const Stmt& a, const Stmt& d) {
    const For* mine = a.as<For>();
    const For* said = d.as<For>();
    if (mine && said && is_const_int(mine->extent, 1) != is_const_int(said->extent, 1)) {
      (is_const_int(mine->extent, 1) ? said : mine) = nullptr;
    }
    if (mine && !said && is_const_int(mine->extent, 1)) {
      units_[mine->loop_var] = substitute(mine->min, units_);
      analyzer_.bind(mine->loop_var, range(mine->min, mine->extent));
      inside_.emplace_back(mine->loop_var);
      return match(mine->body, d);
    }
    if (said && !mine && is_const_int(said->extent, 1)) {
      values_[said->loop_var] = substitute(said->min, values_);
      return match(a, said->body);
    }
    if (a.kind() != d.kind()) {
      return differ("the description has a " + kind_name(d.kind()) + " where the block has a " + kind_name(a.kind()),
                    a);
    }
    if (mine) return match_loop(*mine, *said, a);
    if (const BlockRealize* realize = a.as<BlockRealize>()) return match_realize(*realize, *d.as<BlockRealize>(), a);
    if (const BufferStore* store = a.as<BufferStore>()) return match_store(*store, *d.as<BufferStore>(), a);
    if (const SeqStmt* seq = a.as<SeqStmt>()) {
      const SeqStmt& other = *d.as<SeqStmt>();
      if (seq->seq.size() != other.seq.size()) return differ("the description has another number of statements", a);
      for (size_t i : indices_of(seq->seq)) {
        if (!match(seq->seq[i], other.seq[i])) return false;
      }
      return true;
    }
    if (const IfThenElse* branch = a.as<IfThenElse>()) {
      const IfThenElse& other = *d.as<IfThenElse>();
      if (branch->else_case.defined() != other.else_case.defined()) return differ("only one has an else", a);
      return match(branch->condition, other.condition) && match(branch->then_case, other.then_case) &&
             (!branch->else_case.defined() || match(branch->else_case, other.else_case));
    }
    if (const LetStmt* let = a.as<LetStmt>()) {
      const LetStmt& other = *d.as<LetStmt>();
      if (!match(let->value, other.value)) return false;
      values_[other.var] = let->var;
      inside_.emplace_back(let->var);
      return match(let->body, other.body);
    }
    return differ("a " + kind_name(a.kind()) + " cannot be compared", a);
  }

  bool match_loop(const For& mine, const For& said, const NodeRef& where) {
    if (!equal(mine.extent, said.extent) || !equal(mine.min, said.min)) {
      return differ("the description has a loop '" + said.loop_var->name_hint + "' of " + brief(said.extent) +
                        " iterations where the block has '" + mine.loop_var->name_hint + "' of " + brief(mine.extent),
                    where);
    }
    auto thread = [](const For& loop) {
      return loop.thread_binding.defined() ? loop.thread_binding->thread_tag : std::string();
    };
    if (thread(mine) != thread(said)) {
      return differ("the loop '" + mine.loop_var->name_hint + "' is bound to other threads than in the description",
                    where);
    }
    analyzer_.bind(mine.loop_var, range(mine.min, mine.extent));
    define(said.loop_var, mine.loop_var);
    inside_.emplace_back(mine.loop_var);
    return match(mine.body, said.body);
  }

  bool match_realize(const BlockRealize& mine, const BlockRealize& said, const NodeRef& where) {
    const Block &a = *mine.block, &d = *said.block;
    if (!a.alloc_buffers.empty() || !a.match_buffers.empty() || !d.alloc_buffers.empty() || !d.match_buffers.empty()) {
      return differ("block '" + a.name_hint + "' allocates buffers or has views, or the description does", where);
    }
    // Axes with one value may be on one side only.
    auto trivial = [](const Block& block, size_t i) {
      return i < block.iter_vars.size() && is_const_int(block.iter_vars[i]->dom->extent, 1);
    };
    size_t i = 0, j = 0;
    while (i < a.iter_vars.size() || j < d.iter_vars.size()) {
      if (trivial(a, i) && !trivial(d, j)) {
        analyzer_.bind(a.iter_vars[i]->var, a.iter_vars[i]->dom);
        units_[a.iter_vars[i]->var] = substitute(a.iter_vars[i]->dom->min, units_);
        inside_.emplace_back(a.iter_vars[i++]->var);
        continue;
      }
      if (trivial(d, j) && !trivial(a, i)) {
        values_[d.iter_vars[j]->var] = substitute(d.iter_vars[j]->dom->min, values_);
        ++j;
        continue;
      }
      if (i == a.iter_vars.size() || j == d.iter_vars.size()) {
        return differ(
            "block '" + a.name_hint + "' has another number of axes than '" + d.name_hint + "' of the description",
            where);
      }
      if (!match_axis(a.iter_vars[i], mine.iter_values[i], d.iter_vars[j], said.iter_values[j], where)) return false;
      ++i;
      ++j;
    }
    if (!match(mine.predicate, said.predicate)) return differ("the conditions of the blocks differ", where);
    if (a.init.defined() != d.init.defined()) {
      return differ(a.init.defined() ? "block '" + a.name_hint + "' has an init, the description has none"
                                     : "the description has an init, block '" + a.name_hint + "' has none",
                    where);
    }
    return (!a.init.defined() || match(a.init, d.init)) && match(a.body, d.body);
  }

  bool match_axis(const Ref<IterVar>& mine, const Expr& value, const Ref<IterVar>& said, const Expr& said_value,
                  const NodeRef& where) {
    if (mine->iter_type != said->iter_type || !equal(mine->dom->min, said->dom->min) ||
        !equal(mine->dom->extent, said->dom->extent)) {
      return differ("the axis '" + mine->var->name_hint + "' has another kind or range than '" + said->var->name_hint +
                        "' of the description",
                    where);
    }
    if (!equal(value, said_value)) {
      return differ("the axis '" + mine->var->name_hint + "' is bound to " + brief(value) + ", '" +
                        said->var->name_hint + "' of the description to " + brief(said_value),
                    where);
    }
    analyzer_.bind(mine->var, mine->dom);
    define(said->var, mine->var);
    inside_.emplace_back(mine->var);
    return true;
  }

  bool match_store(const BufferStore& mine, const BufferStore& said, const NodeRef& where) {
    if (mine.predicate.defined() || said.predicate.defined()) return differ("a store has a mask", where);
    return match_access(mine.buffer, mine.indices, said.buffer, said.indices, where) && match(mine.value, said.value);
  }

  // ---- expressions

  /// A loop or axis of the description is one of the program, which may have smaller indices.
  void define(const Ref<Var>& said, const Ref<Var>& mine) {
    values_[said] = mine.dtype().bits < said.dtype().bits ? cast(said.dtype(), mine) : Expr(mine);
  }

  /// Returns an expression of the description in terms of the program.
  Expr said(const Expr& e) const { return substitute(e, values_); }

  static bool is_index(const Expr& e) {
    bool plain = e.dtype().is_scalar() && e.dtype().is_integral();
    return plain && !uses_memory(e);
  }
  static bool uses_memory(const Expr& e) { return effect_of(e) != Effect::kPure; }

  bool equal(const Expr& a, const Expr& d) {
    Expr other = said(d);
    if (a.dtype() == other.dtype()) return same_expr(a, other) || analyzer_.can_prove_equal(a, other);
    if (a.dtype().is_int() && other.dtype().is_int()) return analyzer_.can_prove_equal(a, cast(a.dtype(), other));
    return false;
  }

  bool match(const Expr& a, const Expr& d) {
    if (is_index(a) && is_index(d) && equal(a, d)) return true;
    auto no = [&] { return differ("the description has " + brief(d) + " where the block has " + brief(a), a); };
    if (a.dtype() != d.dtype() && !(is_index(a) && is_index(d))) {
      return differ("the description has " + brief(d) + " of type " + d.dtype().str() + " where the block has " +
                        brief(a) + " of type " + a.dtype().str(),
                    a);
    }
    if (a.kind() != d.kind()) {
      // Perhaps one of them is only written differently.
      Expr simple = analyzer_.simplify_value(a), other = analyzer_.simplify_value(d);
      if ((simple == a && other == d) || simple.kind() != other.kind()) return no();
      return match_parts(simple, other) || no();
    }
    return match_parts(a, d) || no();
  }

  static constexpr Kind kCommuting[] = {Kind::kAdd, Kind::kMul, Kind::kMin, Kind::kMax,
                                        Kind::kEQ,  Kind::kNE,  Kind::kAnd, Kind::kOr};

  /// Matches expressions of one kind.
  bool match_parts(const Expr& a, const Expr& d) {
    if (const BufferLoad* load = a.as<BufferLoad>()) {
      const BufferLoad& other = *d.as<BufferLoad>();
      if (load->predicate.defined() || other.predicate.defined()) return differ("a load has a mask", a);
      return match_access(load->buffer, load->indices, other.buffer, other.indices, a);
    }
    if (const Cast* conversion = a.as<Cast>()) {
      return a.dtype() == d.dtype() && match(conversion->value, d.as<Cast>()->value);
    }
    if (const Select* choice = a.as<Select>()) {
      const Select& other = *d.as<Select>();
      return match(choice->condition, other.condition) && match(choice->true_value, other.true_value) &&
             match(choice->false_value, other.false_value);
    }
    if (const Call* call = a.as<Call>()) {
      const Call& other = *d.as<Call>();
      if (!structural_equal(call->op, other.op) || call->args.size() != other.args.size()) return false;
      for (size_t i : indices_of(call->args)) {
        if (call->args[i].sort() != Sort::kExpr || other.args[i].sort() != Sort::kExpr) return false;
        if (!match(call->arg(i), other.arg(i))) return false;
      }
      return true;
    }
    if (const BinaryOperands operands = binary_operands(a)) {
      const BinaryOperands others = binary_operands(d);
      return match_pair(*operands.a, *operands.b, *others.a, *others.b, is_contained(kCommuting, a.kind()));
    }
    return structural_equal(a, said(d));
  }

  bool match_pair(const Expr& a, const Expr& b, const Expr& c, const Expr& d, bool commutes) {
    if (!commutes) return match(a, c) && match(b, d);
    Parts parts = parts_;
    std::optional<Difference> before = difference_;
    if (match(a, c) && match(b, d)) return true;
    if (++swaps_ > kMaxSwaps) return false;
    std::optional<Difference> first = difference_;
    parts_ = parts;
    difference_ = before;
    if (match(a, d) && match(b, c)) return true;
    difference_ = first;
    return false;
  }

  bool match_access(const Ref<Buffer>& buffer, const std::vector<Expr>& indices, const Ref<Buffer>& described,
                    const std::vector<Expr>& said_indices, const NodeRef& where) {
    std::string both = "'" + described->name + "' of the description and '" + buffer->name + "'";
    if (buffer->dtype != described->dtype) {
      return differ(both + " hold elements of types " + described->dtype.str() + " and " + buffer->dtype.str(), where);
    }
    if (indices.size() < said_indices.size()) {
      return differ(both + " have " + std::to_string(said_indices.size()) + " and " + std::to_string(indices.size()) +
                        " dimensions",
                    where);
    }
    size_t leading = indices.size() - said_indices.size();
    std::vector<Expr> start;
    std::vector<bool> gathered(indices.size(), false);
    for (size_t d : indices_of(indices)) {
      Expr base = indices[d];
      const BufferLoad *mine = element(base), *theirs = d < leading ? nullptr : element(said_indices[d - leading]);
      if (mine && theirs) {
        if (!match_access(mine->buffer, mine->indices, theirs->buffer, theirs->indices, where)) return false;
        gathered[d] = true;
        start.push_back(zero(base.dtype()));
        continue;
      }
      if (d >= leading) base = base - cast(base.dtype(), said(said_indices[d - leading]));
      base = analyzer_.simplify(base);
      if (moves(base) || uses_memory(base)) {
        return differ("the description reads or writes " + brief(described, said_indices) + " where the block has " +
                          brief(buffer, indices) + ": dimension " + std::to_string(d) + " does not run alike",
                      where);
      }
      start.push_back(std::move(base));
    }
    auto [it, fresh] = parts_.try_emplace(described, Part{buffer, start, gathered});
    if (fresh) return true;
    bool same = it->second.buffer == buffer && it->second.gathered == gathered;
    for (size_t d = 0; same && d < start.size(); ++d) {
      same = analyzer_.can_prove_equal(start[d], it->second.start[d]);
    }
    return same || differ("'" + described->name + "' of the description would be " + brief(buffer, indices) +
                              " here and something else elsewhere",
                          where);
  }

  /// The element of an array that an index is; null if it is something else.
  static const BufferLoad* element(const Expr& index) {
    const Cast* cast = index.as<Cast>();
    return (cast ? cast->value : index).as<BufferLoad>();
  }

  static std::string brief(const Ref<Buffer>& buffer, const std::vector<Expr>& indices) {
    std::string text = buffer->name + "[";
    for (size_t i : indices_of(indices)) text += (i ? ", " : "") + analysis::brief(indices[i]);
    return text + "]";
  }
  static std::string brief(const Expr& e) { return analysis::brief(e); }

  /// Whether the expression depends on loops inside of the block that have several iterations.
  bool moves(const Expr& e) const {
    return uses_any_var(e, [&](const Ref<Var>& v) {
      return !units_.contains(v) && any_of(inside_, [&](const NodeRef& mine) { return mine == v; });
    });
  }

  /// Each failing level would try both orders of all levels below it.
  static constexpr int kMaxSwaps = 200;

  arith::Analyzer& analyzer_;
  int swaps_ = 0;
  VarMap values_;                ///< variables of the description
  VarMap units_;                 ///< variables of the program that have one value
  std::vector<NodeRef> inside_;  ///< variables of the program that are defined in the body
  Parts parts_;
  std::optional<Difference> difference_;
};

}  // namespace

std::variant<Parts, Difference> match_description(const Stmt& body, const Stmt& desc, arith::Analyzer& analyzer) {
  return Matcher(analyzer).run(body, desc);
}

}  // namespace tilewright::schedule
