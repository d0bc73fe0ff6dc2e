#include "analysis/cover_mirror.h"

#include "analysis/block_facts.h"
#include "analysis/cover.h"
#include "ir/build.h"
#include "ir/conjunction.h"
#include "ir/op.h"
#include "ir/structural.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

/// A substitution of reader loops for writer loops that makes expressions equal.
class Mirror {
 public:
  Mirror(const arith::IterDomains& writing, const arith::IterDomains& reading) : writing_(writing), reading_(reading) {}

  /// Adds loops to the substitution until both expressions are equal. Returns false if there is none.
  bool matches(const Expr& written, const Expr& read) {
    if (effect_of(written) != Effect::kPure) return false;  // the memory may change between the write and the read
    for (size_t tries = 0; tries <= writing_.size(); ++tries) {
      auto mismatch = find_mismatch(substitute(written, loops_), read);
      if (!mismatch) return true;
      const Ref<Range>*from = domain(writing_, mismatch->lhs), *to = domain(reading_, mismatch->rhs);
      if (!from || !to || !same_domain(**from, **to)) return false;
      loops_.emplace(mismatch->lhs.cast<Var>(), Expr(mismatch->rhs.cast<Var>()));
    }
    return false;
  }

  /// Substitutes the first iteration for writer loops that occur in no index. Returns false if such a loop may be
  /// empty.
  bool fix_unused_loops() {
    for (const auto& [loop_var, range] : writing_) {
      if (loops_.contains(loop_var)) continue;
      if (auto extent = const_int(range->extent); !extent || *extent < 1) return false;
      loops_.emplace(loop_var, substitute(range->min, loops_));
    }
    return true;
  }

  Expr operator()(const Expr& written) const { return substitute(written, loops_); }

 private:
  static const Ref<Range>* domain(const arith::IterDomains& loops, const NodeRef& variable) {
    auto it = find_if(loops, [&](const auto& each) { return each.first == variable; });
    return it == loops.end() ? nullptr : &it->second;
  }
  bool same_domain(const Range& written, const Range& read) const {
    return same_expr((*this)(written.min), read.min) && same_expr((*this)(written.extent), read.extent);
  }

  const arith::IterDomains &writing_, &reading_;
  VarMap loops_;
};

}  // namespace

bool mirrors(const ConditionalAccess& write, const ConditionalAccess& read) {
  if (write.region.size() != read.region.size()) return false;
  Mirror mirror(write.loops, read.loops);
  for (size_t d : indices_of(write.region)) {
    if (!mirror.matches(write.region[d]->min, read.region[d]->min)) return false;
    if (!mirror.matches(write.region[d]->extent, read.region[d]->extent)) return false;
  }
  if (!mirror.fix_unused_loops()) return false;
  const std::vector<Expr> write_conditions = conjuncts(write.condition), known = conjuncts(read.condition);
  return all_of(write_conditions, [&](const Expr& term) {
    const Expr now = mirror(term);
    return effect_of(now) == Effect::kPure && any_of(known, [&](const Expr& other) { return same_expr(now, other); });
  });
}

bool mirrors(const BlockRealize& writer, const Ref<BufferRegion>& write, const arith::IterDomains& writing,
             const BlockRealize& reader, const Ref<BufferRegion>& read, const arith::IterDomains& reading) {
  const auto& axes = writer.block->iter_vars;
  return all_of(axes, is_data_parallel) &&  // one step of a reduction does not complete an element
         mirrors({bound_region(writer, write), writing, writer.predicate},
                 {bound_region(reader, read), reading, reader.predicate});
}

}  // namespace tilewright::analysis
