// Write down where the threads of a team wait for one another between statements.
//
//   Before                                          After
//   for tx in T.thread_binding(32, "threadIdx.x"):  for tx in T.thread_binding(32, "threadIdx.x"):
//     with T.block("S"): S[tx] = ...                  with T.block("S"): S[tx] = ...
//     with T.block("B"): ... = S[31 - tx]             T.tvm_storage_sync("shared")
//                                                     with T.block("B"): ... = S[31 - tx]
//
// Blocks say what depends on what, plain statements exchange data through shared memory, and threads wait in between
// (analysis/team.h). Loops over threads run one after another: in the kernel, threads do not end with them, so they
// wait there too, also in programs with barriers of their own. These barriers preserve the meaning of the program
// until place_barriers, which knows byte addresses, replaces them. They also mark the loops that all threads of a
// block have to execute together. Asynchronous copies are there for other threads behind a wait for them and one more
// barrier.
//
// Needs      blocks
// Ensures    the interpreter finds no race once blocks are gone
// Placement  right before lower_blocks
#include "analysis/team.h"
#include "analysis/threads.h"
#include "ir/async_copy.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/gpu/kernel.h"
#include "lower/passes.h"

namespace tilewright::lower {
namespace {

using analysis::Exchange;
using enum analysis::Exchange;

class Waits {
  template <class F>
  auto under(bool uniform, const F& work) {
    bool around = std::exchange(together_, together_ && uniform);
    auto result = work();
    together_ = around;
    return result;
  }

 public:
  /// `by_order`: threads wait where the order of statements matters; otherwise only between loops over threads.
  explicit Waits(bool by_order) : by_order_(by_order) {}

  Stmt run(const Stmt& body) {
    visit(body, [&](const Ref<AttrStmt>& attr) {
      if (attr->attr_key == "async_scope") copied_.add(analysis::Touched::by(attr->body, kTeamMemory));
    });
    copied_.read.clear();
    return rewrite(
        body, [&](const Ref<For>& loop, Rewriter& r) -> Stmt { return enter(loop, r); },
        [&](const Ref<IfThenElse>& branch, Rewriter& r) -> Stmt {
          const bool uniform = is_uniform(branch->condition);
          Ref<IfThenElse> inner = under(uniform, [&] { return r.descend(branch); });
          if (!uniform || !by_order_ || !waits() || !analysis::needs_barrier_after_condition(branch->condition, branch))
            return inner;
          IfThenElse copy = *inner;
          Ref<Var> holds = var("holds", copy.condition.dtype());
          const Expr condition = std::exchange(copy.condition, holds);
          ++waits_;
          return make<LetStmt>({holds, condition, seq({barrier(branch.span()), make(std::move(copy))})}, branch.span());
        },
        [&](const Ref<While>& loop, Rewriter& r) -> Stmt {
          return under(is_uniform(loop->condition), [&] { return r.descend(loop); });
        },
        [&](const Ref<BlockRealize>& realize, Rewriter& r) -> Stmt {
          return under(is_uniform(realize->predicate), [&] { return r.descend(realize); });
        },
        [&](const Ref<LetStmt>& let, Rewriter& r) -> Stmt {
          if (!is_uniform(let->value)) varying_.insert(let->var);
          return r.descend(let);
        },
        [&](const Ref<SeqStmt>& all, Rewriter& r) -> Stmt { return sequence(all, r); });
  }

 private:
  /// Whether all threads come here, inside of bound loops.
  bool waits() const { return bound_ > 0 && together_; }

  static bool has_team_loops(const Stmt& s) {
    bool found = false;
    visit(s, [&](const Ref<For>& loop, Visitor& v) {
      auto axis = is_bound(*loop) ? analysis::thread_axis(*loop) : std::nullopt;
      found |= axis && axis->in_team();
      if (!found) v.descend(loop);
    });
    return found;
  }

  /// An iteration uses memory as the one before it left it.
  bool needs_barrier_between_iterations(const Stmt& body) const {
    if (by_order_ && analysis::needs_barrier_between_iterations(body)) return true;
    if (analysis::has_blocks(body) || !has_team_loops(body)) return false;
    const analysis::Touched touched = analysis::Touched::by(body, kTeamMemory);
    return touched.depends_on(touched);
  }

  bool is_uniform(const Expr& e) const {
    return !e.defined() || analysis::is_uniform(e, [&](const Ref<Var>& v) { return varying_.contains(v); });
  }

  Stmt enter(const Ref<For>& loop, Rewriter& r) {
    if (is_bound(*loop)) {
      auto axis = analysis::thread_axis(*loop);
      bool in_team = axis && axis->in_team();
      if (in_team) varying_.insert(loop->loop_var);
      ++bound_;
      Stmt result = r.descend(loop);
      --bound_;
      return result;
    }
    bool uniform = is_uniform(loop->min) && is_uniform(loop->extent);
    if (!uniform) varying_.insert(loop->loop_var);
    int before = waits_;
    bool serial = loop->kind == ForKind::kSerial || loop->kind == ForKind::kUnrolled;
    waits_ += uniform && serial && waits() && needs_barrier_between_iterations(loop->body);
    Ref<For> inner = under(uniform && serial, [&] { return r.descend(loop); });
    if (waits_ == before) return inner;
    // The next iteration may write what other threads still read.
    return with_body(inner, seq({inner->body, barrier(loop.span())}));
  }

  Stmt sequence(const Ref<SeqStmt>& all, Rewriter& r) {
    const bool joins = has_team_loops(all), in_order = waits() && (by_order_ || joins);
    const Exchange exchange = in_order && !joins ? analysis::exchange_of(all) : kTeamMemory;
    std::vector<Stmt> items;
    analysis::Touched before;
    for (const Stmt& item : all->seq) {
      if (in_order) {
        analysis::Touched now = analysis::Touched::by(item, exchange);
        const Evaluate* step = item.as<Evaluate>();
        if (step && is_wait_for_copies(step->value)) {
          // The copies of a thread are there for itself only.
          before.add(copied_);
          items.push_back(item);
          continue;
        }
        if (now.depends_on(before)) {
          items.push_back(barrier(item.span()));
          ++waits_;
          before = {};
        }
        before.add(now);
      }
      items.push_back(r(item));
    }
    return seq(std::move(items));
  }

  bool by_order_;
  analysis::Touched copied_;             ///< by asynchronous copies
  std::unordered_set<NodeRef> varying_;  ///< variables that differ between the threads of a team
  int bound_ = 0;                        ///< bound loops around: one after another, they run on the same threads
  bool together_ = true;                 ///< all threads come here
  int waits_ = 0;
};

}  // namespace

PassResult wait_between_blocks(const Ref<PrimFunc>& func, PassContext&) {
  return with_body(func, Waits(analysis::has_implicit_barriers(*func)).run(func->body));
}

}  // namespace tilewright::lower
