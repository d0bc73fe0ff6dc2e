// Keep in registers what a loop adds to elements that were initialized just before it.
//
//   Before                              After
//   C[i] = 0                            acc = T.allocate([1], "float32", "local")
//   for p in range(P[i + 1] - P[i]):    acc[0] = 0
//     C[i] = C[i] + A[P[i] + p]         for p in range(P[i + 1] - P[i]):
//                                         acc[0] = acc[0] + A[P[i] + p]
//                                       C[i] = acc[0]
//
// The code generator keeps such an element in a register while the loop runs, but has to store the initial value
// before, as the loop may run no iteration. Rows of sparse matrices are short: the second store of a row of eight
// vectors takes a third of the time, as buffers of stores fill up while rows of the result are fetched.
//
// An element is moved if its index is the same in all iterations, the loop and the statements that initialize it use it
// by that index only, and no other name of its memory is used there.
//
// Needs      vector code, loops unrolled: an element is then one value
// Ensures    the same value of each element behind the loop
// Placement  behind plan_workspaces: the registers share no memory with what is placed
#include <algorithm>

#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/passes.h"
#include "lower/vector/lane_independence.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

/// Elements of one loop: more would not fit the registers.
constexpr size_t kMostAccumulators = 32;

/// An element that statements before a loop initialize, and the loop updates.
struct Accumulator {
  Ref<BufferStore> init;
  Ref<Buffer> value;
};

/// A loop, and the stores in front of it.
class LoopPromotion {
 public:
  LoopPromotion(const Ref<For>& loop, const std::unordered_set<NodeRef>& own, arith::Analyzer& analyzer)
      : loop_(loop), own_(own), analyzer_(analyzer) {
    visit(
        loop, [&](const Ref<For>& inner) { defined_.insert(inner->loop_var); },
        on<LetStmt, Let>([&](const auto& let) { defined_.insert(let->var); }),
        [&](const Ref<BufferStore>& store) { updates_.push_back(store); });
  }

  /// Removes from `before` the stores of initial values right before the loop, and keeps the others.
  void take(std::vector<Stmt>& before) {
    while (!before.empty() && accumulators_.size() < kMostAccumulators) {
      const Ref<BufferStore> store = before.back().cast<BufferStore>();
      if (!store.defined() || !is_init(*store)) break;
      accumulators_.push_back({store, {}});
      before.pop_back();
    }
    std::ranges::reverse(accumulators_);
    if (!accumulators_.empty() && !is_alone()) give_back(before);
  }

  /// The statements in the place of the stores that were taken, and of the loop.
  Stmt result() {
    if (accumulators_.empty()) return loop_;
    std::vector<Stmt> all, stores;
    for (Accumulator& each : accumulators_) {
      const DataType type = each.init->value.dtype();
      each.value = decl_buffer({i32(1)}, type, each.init->buffer->name + "_sum", "local");
      all.push_back(store(each.value, each.init->value, {i32(0)}));
      stores.push_back(make<BufferStore>({each.init->buffer, load(each.value, {i32(0)}), each.init->indices, {}}));
    }
    all.push_back(in_registers());
    append_range(all, stores);
    Stmt made = seq(std::move(all));
    for (const Accumulator& each : accumulators_) {
      Stmt declared = make<DeclBuffer>({each.value, made});
      made = make<Allocate>({each.value->data, each.value->dtype, {i32(1)}, bool_imm(true), declared, {}});
    }
    return made;
  }

 private:
  bool is_init(const BufferStore& store) {
    const DataType type = store.buffer->dtype;
    const bool is_number = type.is_scalar() && (type.is_int() || type.is_uint() || type.is_float()) && type.bits >= 32;
    if (!is_number || store.predicate.defined() || store.indices.size() != 1 || is_local(*store.buffer)) return false;
    if (!own_.contains(store.buffer->data)) return false;
    const Expr& index = store.indices[0];
    if (index.dtype().is_vector() && !is_contiguous(index)) return false;
    bool is_fixed = effect_of(index) == Effect::kPure && effect_of(store.value) <= Effect::kReadState;
    visit(index, [&](const Ref<Var>& var) { is_fixed &= !defined_.contains(var); });
    visit(index, [&](const Ref<BufferLoad>&) { is_fixed = false; });
    visit(store.value, [&](const Ref<BufferLoad>& load) { is_fixed &= load->buffer->data != store.buffer->data; });
    return is_fixed && is_updated(store) &&
           all_of(accumulators_, [&](const Accumulator& other) { return are_apart(store, *other.init); });
  }

  bool is_updated(const BufferStore& init) const {
    return any_of(updates_, [&](const Ref<BufferStore>& store) {
      return store->buffer == init.buffer && store->indices.size() == 1 &&
             same_expr(store->indices[0], init.indices[0]);
    });
  }

  static bool is_contiguous(const Expr& index) {
    const Ramp* lanes = index.as<Ramp>();
    return lanes && is_const_int(lanes->stride, 1);
  }

  /// Whether two stores write different elements, whoever reads the other's buffer.
  bool are_apart(const BufferStore& one, const BufferStore& other) {
    if (one.buffer->data != other.buffer->data) {
      auto reads = [](const BufferStore& by, const BufferStore& store) {
        return any_node(by.value,
                        [&](const Ref<BufferLoad>& load) { return load->buffer->data == store.buffer->data; });
      };
      return !reads(one, other) && !reads(other, one);
    }
    if (one.buffer != other.buffer) return false;
    const int lanes = one.indices[0].dtype().lanes;
    if (lanes != other.indices[0].dtype().lanes) return false;
    const auto gap = const_int(analyzer_.simplify(first(one.indices[0]) - first(other.indices[0])));
    return gap && std::abs(*gap) >= lanes;
  }

  static Expr first(const Expr& index) { return index.is<Ramp>() ? Expr(index.as<Ramp>()->base) : index; }

  const Accumulator* find(const Ref<Buffer>& buffer, const std::vector<Expr>& indices, const Expr& predicate) const {
    if (predicate.defined() || indices.size() != 1) return nullptr;
    for (const Accumulator& each : accumulators_) {
      if (each.init->buffer == buffer && same_expr(each.init->indices[0], indices[0])) return &each;
    }
    return nullptr;
  }

  bool is_promoted(const NodeRef& data) const {
    return any_of(accumulators_, [&](const Accumulator& each) { return each.init->buffer->data == data; });
  }

  /// Whether the loop uses the memory of the elements by their indices only.
  bool is_alone() {
    bool alone = true;
    auto look = [&](const Ref<Buffer>& buffer, const std::vector<Expr>& indices, const Expr& predicate) {
      alone &= is_promoted(buffer->data) ? find(buffer, indices, predicate) != nullptr
                                         : is_local(*buffer) || own_.contains(buffer->data);
    };
    visit(
        loop_, on<BufferStore, BufferLoad>([&](const auto& access) {
          look(access->buffer, access->indices, access->predicate);
        }),
        [&](const Ref<Call>& call) {
          // Whoever has the address may do anything; a request to fetch does nothing.
          const Intrinsic intrinsic = intrinsic_of(*call);
          if (intrinsic == Intrinsic::k_address_of) {
            const BufferLoad* element = call->args[0].as<BufferLoad>();
            alone &= element && !is_promoted(element->buffer->data);
          }
          for (const NodeRef& argument : call->args) alone &= !is_promoted(argument);
          const Effect effect = intrinsic_row(intrinsic).effect;
          alone &= effect == Effect::kPure || effect == Effect::kReadState || intrinsic == Intrinsic::k_prefetch;
        },
        [&](const Ref<LetStmt>& let) { alone &= !is_promoted(let->value); },
        [&](const Ref<For>& inner) { alone &= inner->kind == ForKind::kSerial; },
        [&](const Ref<While>&) { alone = false; });
    return alone;
  }

  void give_back(std::vector<Stmt>& before) {
    for (const Accumulator& each : accumulators_) before.push_back(each.init);
    accumulators_.clear();
  }

  Stmt in_registers() {
    return rewrite(
        Stmt(loop_),
        [&](const Ref<BufferLoad>& read, Rewriter& r) -> Expr {
          const Accumulator* found = find(read->buffer, read->indices, read->predicate);
          return found ? load(found->value, {i32(0)}) : Expr(r.descend(read));
        },
        [&](const Ref<BufferStore>& written, Rewriter& r) -> Stmt {
          const Accumulator* found = find(written->buffer, written->indices, written->predicate);
          if (!found) return r.descend(written);
          return make<BufferStore>({found->value, r(written->value), {i32(0)}, {}}, written.span());
        });
  }

  Ref<For> loop_;
  const std::unordered_set<NodeRef>& own_;
  arith::Analyzer& analyzer_;
  std::unordered_set<NodeRef> defined_;    ///< in the loop
  std::vector<Ref<BufferStore>> updates_;  ///< there
  std::vector<Accumulator> accumulators_;
};

void flatten(const Stmt& statement, std::vector<Stmt>& all) {
  if (const SeqStmt* several = statement.as<SeqStmt>()) {
    for (const Stmt& each : several->seq) flatten(each, all);
  } else {
    all.push_back(statement);
  }
}

}  // namespace

PassResult promote_accumulators(const Ref<PrimFunc>& func, PassContext& context) {
  const std::unordered_set<NodeRef> own = private_memory(*func, context);
  arith::Analyzer analyzer;
  Stmt body = rewrite(
      func->body,
      [&](const Ref<SeqStmt>& several, Rewriter& r) -> Stmt {
        std::vector<Stmt> given, made;
        flatten(several, given);
        bool changed = false;
        for (const Stmt& each : given) {
          const bool is_serial = each.is<For>() && each.as<For>()->kind == ForKind::kSerial;
          if (is_serial && !made.empty()) {
            LoopPromotion promoted(each.cast<For>(), own, analyzer);
            promoted.take(made);
            made.push_back(promoted.result());
            if (made.back() != each) {
              changed = true;
              continue;
            }
            made.pop_back();
          }
          made.push_back(r(each));
          changed |= made.back() != each;
        }
        return changed ? seq(std::move(made)) : Stmt(several);
      },
      [&](const Ref<BufferStore>& store, Rewriter&) -> Stmt { return store; });
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
