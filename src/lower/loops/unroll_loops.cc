// Write out the iterations of unrolled loops.
//
//   Before                         After
//   for i in T.unroll(2):          acc[0] = acc[0] + A[k]
//     acc[i] = acc[i] + A[i + k]   acc[1] = acc[1] + A[k + 1]
//
// Besides the loops that the program marks, those are unrolled whose variable selects an element of a small buffer of
// scope "local": a register cannot be selected at run time. With "pragma_unroll_explicit" set to 0 a marked loop stays
// and carries an unroll hint for the code generator instead. One that would be too long written out, alone or with the
// others of the function, stays a loop, and a note says so.
//
// "pragma_auto_unroll_max_step" on a loop, for it and all loops inside: serial loops are unrolled from the innermost
// out as long as nothing but stores is left in them and there are at most so many; "pragma_unroll_explicit" says how,
// there too.
//
// Needs      vector loops are vector operations
// Ensures    indices into local buffers are constants wherever the loops around them have constant extents
// Placement  after vectorize_loops; before promote_registers, which needs those constants
#include <algorithm>
#include <utility>

#include "ir/annotations.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/passes.h"
#include "lower/vector/vector_math.h"

namespace tilewright::lower {
namespace {

/// Stores and loads that an unrolled loop may expand to, and all unrolled loops of a function together. A loop that is
/// left inside counts as so many of them: compilers take that much longer.
constexpr int64_t kLoopAsAccesses = 16;
constexpr int64_t kMostUnrolledAccesses = 8192;
constexpr int64_t kMostAccessesInAll = 32768;
/// Maximum unroll factor that is left to the code generator.
constexpr int64_t kMostHinted = 64;

class Unroller {
 public:
  explicit Unroller(PassContext& context) : context_(context), target_(context.target) {}

  Stmt run(const Stmt& body) {
    collect_selectors(body);
    return rewrite(body, [&](const Ref<For>& loop, Rewriter& r) -> Stmt { return unroll(loop, r); });
  }

 private:
  /// Loop variables in indices of buffers small enough for registers.
  void collect_selectors(const Stmt& body) {
    std::unordered_set<NodeRef> local;
    visit(body, [&](const Ref<Allocate>& allocate) {
      if (fits_registers(*allocate, target_)) local.insert(allocate->buffer_var);
    });
    if (local.empty()) return;
    visit(body, on<BufferLoad, BufferStore>([&](const auto& access) {
            if (!local.count(access->buffer->data)) return;
            for (const Expr& index : access->indices) {
              visit(index, [&](const Ref<Var>& v) { selectors_.insert(v); });
            }
          }));
  }

  /// Returns the number of accesses that the code generator gets, including copies by unroll hints.
  static int64_t count_accesses(const Stmt& s) {
    int64_t count = 1;
    visit(
        s,
        [&](const Ref<For>& loop, Visitor&) {
          const IntImm* copies = loop->annotations.get(kUnrollHint).as<IntImm>();
          count += (kLoopAsAccesses + count_accesses(loop->body)) * (copies ? copies->value : 1);
        },
        on<BufferLoad, BufferStore>([&](const auto&) { ++count; }));
    return count;
  }

  /// Requests of the annotations of the loops around.
  struct Asked {
    int64_t most_steps = 0;
    bool explicitly = true;
  };
  static Asked asked_inside(const For& loop, Asked around) {
    if (const IntImm* steps = loop.annotations.get("pragma_auto_unroll_max_step").as<IntImm>()) {
      around.most_steps = steps->value;
    }
    if (const IntImm* flag = loop.annotations.get("pragma_unroll_explicit").as<IntImm>()) {
      around.explicitly = flag->value != 0;
    }
    return around;
  }

  /// Stores and calls, of which a loop that is left makes more than one can count.
  static std::optional<int64_t> count_steps(const Stmt& s) {
    int64_t count = 0;
    bool loops = false;
    visit(s, on<For, While>([&](const auto&) { loops = true; }),
          on<BufferStore, Evaluate>([&](const auto&) { ++count; }));
    return loops ? std::nullopt : std::optional(count);
  }

  bool is_short(const For& loop, const Asked& asked) const {
    auto extent = const_int(loop.extent);
    if (loop.kind != ForKind::kSerial || !extent || *extent < 1) return false;
    auto steps = count_steps(loop.body);
    return steps && *steps > 0 && *extent <= asked.most_steps / *steps;
  }

  Stmt unroll(const Ref<For>& loop, Rewriter& r) {
    Asked around = asked_;
    asked_ = asked_inside(*loop, around);
    Ref<For> inner = r.descend(loop);
    Asked asked = std::exchange(asked_, around);
    auto extent = const_int(inner->extent);
    bool marked = inner->kind == ForKind::kUnrolled || is_short(*inner, asked);
    bool selects = inner->kind == ForKind::kSerial && selectors_.count(loop->loop_var);
    if (!marked && !selects) return inner;
    bool keep = marked && !selectors_.count(loop->loop_var) && !asked.explicitly;
    int64_t each = count_accesses(inner->body);
    bool fits =
        extent && *extent <= kMostUnrolledAccesses / each && (*extent - 1) * each <= kMostAccessesInAll - spent_;
    if (!fits || keep) {
      if (!marked) return inner;
      For serial = *inner;
      serial.kind = ForKind::kSerial;
      int64_t wanted = extent ? std::min(*extent, kMostHinted) : 1;
      int64_t copies = std::max<int64_t>(std::min(wanted, kMostUnrolledAccesses / each), 1);
      if (keep) serial.annotations.set(kUnrollHint, i32(copies));
      if (!keep || copies < wanted) report(loop, extent, each);
      return make(std::move(serial), loop.span());
    }
    spent_ += (*extent - 1) * each;
    std::vector<Stmt> copies;
    for (int64_t i = 0; i < *extent; ++i) {
      Stmt copy = substitute_folding(inner->body, inner->loop_var, inner->min + i);
      copies.push_back(i == 0 ? copy : renew_if_defining(copy));
    }
    return seq(std::move(copies));
  }

  void report(const Ref<For>& loop, std::optional<int64_t> extent, int64_t each) {
    std::string why = "its extent is not a constant";
    if (extent) {
      why = std::to_string(*extent) + " copies of " + std::to_string(each) + " accesses are more than the " +
            std::to_string(kMostUnrolledAccesses) + " that a loop may become, or with other loops more than the " +
            std::to_string(kMostAccessesInAll) + " of a function";
    }
    context_.notes.push_back({"lower/not-unrolled", context_.function,
                              "loop '" + loop->loop_var->name_hint + "' is not unrolled: " + why, loop.span()});
  }

  static Stmt renew_if_defining(const Stmt& s) {
    bool defines = false;
    visit(
        s, [&](const Ref<DeclBuffer>&) { defines = true; },
        [&](const Ref<Var>&, Visitor& walk) { defines |= walk.role() == Role::kDef; });
    return defines ? renew_defs(s) : s;
  }

  PassContext& context_;
  const Target& target_;
  int64_t spent_ = 0;  ///< accesses that unrolling has added
  Asked asked_;
  std::unordered_set<NodeRef> selectors_;
};

}  // namespace

PassResult unroll_loops(const Ref<PrimFunc>& func, PassContext& context) {
  return with_body(func, Unroller(context).run(func->body));
}

}  // namespace tilewright::lower
