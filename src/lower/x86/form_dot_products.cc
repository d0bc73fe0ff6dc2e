// Add products of bytes four at a time, where partial sums are put together in the end anyway.
//
//   Before                                            After
//   C_lanes[0:64] = C_lanes[0:64] +                   C_lanes[0:16] = vpdpbusd(C_lanes[0:16], int32x16(A[k:k + 64]),
//     T.Cast("int32x64", A[k:k + 64]) *                                        int32x16(B[k:k + 64]))
//     T.Cast("int32x64", B[k:k + 64])
//   lanes = C_lanes[0:64]                             lanes = T.Shuffle([C_lanes[0:16], zeros], ...)
//
// Which of the partial sums a product is added to is all the same, and integers wrap in any order. The instruction
// takes bytes without signs times bytes with signs; where both have signs, those of the first are flipped, which adds
// 128 times the second, and that is taken away again.
//
// Needs      vector code; allocations of vectorize_reductions, which are marked as partial sums
// Ensures    the same sums. Others, and those of targets without such an instruction, stay
// Placement  after vectorize_loops, which makes the vectors; before unroll_loops: the lanes are counted by loops
#include "lower/x86/form_dot_products.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>

#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/processor_instructions.h"
#include "ir/reduction_step.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/passes.h"
#include "lower/vector/join_lanes.h"
#include "lower/vector/vector_math.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

/// Bytes that one sum takes at a time.
constexpr int kGroup = 4;
constexpr int64_t kSigns = -0x7f7f7f80;  // 0x80808080

/// Uses of a buffer of partial sums.
struct Sums {
  int lanes = 0;     ///< lanes of one result
  bool fits = true;  ///< whether it starts with zeros, products of bytes are added to it, and it is read
  bool has_step = false;
  Ref<Buffer> before, after;
};

struct Factors {
  Expr unsigned_bytes, signed_bytes;
  bool flipped = false;  ///< the first ones have signs, which are to be flipped
};

/// The bytes that are extended to int32; null for anything else.
Expr bytes_of(const Expr& e) {
  const Cast* cast = e.as<Cast>();
  if (!cast || e.dtype().element() != DataType::int_(32)) return {};
  const DataType from = cast->value.dtype();
  return from.is_integral() && !from.is_bool() && from.bits == 8 ? cast->value : Expr();
}

std::optional<Factors> factors_of(const Expr& e) {
  const Mul* product = e.as<Mul>();
  if (!product) return {};
  Expr a = bytes_of(product->a), b = bytes_of(product->b);
  if (!a.defined() || !b.defined()) return {};
  const bool first = a.dtype().is_int(), second = b.dtype().is_int();
  if (!first && !second) return {};
  if (first && second) return Factors{a, b, true};
  return second ? Factors{a, b} : Factors{b, a};
}

/// The widest instruction of the target that adds groups to so many sums, or to a part of them; null without one.
const ProcessorInstruction* dot_of(const Target& target, int sums) {
  const DotTypes types{DataType::uint(8), DataType::int_(8), DataType::int_(32)};
  return dot_instruction(ProcessorInstruction::kDot, types, sums, &target);
}

class Groups {
 public:
  explicit Groups(const Target& target) : target_(target) {}

  Stmt run(const Stmt& body) {
    visit(body, [&](const Ref<Allocate>& allocate) {
      auto lanes = allocate->annotations.get(kPartialSums).as<IntImm>();
      if (lanes && lanes->value % kGroup == 0 && allocate->dtype == DataType::int_(32)) {
        sums_[allocate->buffer_var].lanes = static_cast<int>(lanes->value);
      }
    });
    if (sums_.empty()) return body;
    look(body);
    std::erase_if(sums_, [&](const auto& entry) {
      const Sums& sums = entry.second;
      const bool known = sums.fits && sums.has_step && sums.before.defined();
      return !known || !dot_of(target_, sums.lanes / kGroup);
    });
    return sums_.empty() ? body : changed(body);
  }

 private:
  Sums* find(const Ref<Var>& data) { return find_value(sums_, data); }

  /// Returns the index of the results whose lanes these are.
  std::optional<Expr> place_of(const Sums& sums, const std::vector<Expr>& indices) {
    const Ramp* ramp = indices.size() == 1 ? indices[0].as<Ramp>() : nullptr;
    if (!ramp || !is_const_int(ramp->stride, 1) || indices[0].dtype().lanes > sums.lanes) return {};
    Expr result = analyzer_.simplify(floordiv(ramp->base, constant(ramp->base.dtype(), sums.lanes)));
    if (!analyzer_.can_prove_equal(result * sums.lanes, ramp->base)) return {};
    const int groups = sums.lanes / kGroup;
    return tilewright::ramp(analyzer_.simplify(result * groups), one(result.dtype()), groups);
  }

  void look(const Stmt& body) {
    visit(
        body, [&](const Ref<For>& loop) { analyzer_.bind(loop->loop_var, range(loop->min, loop->extent)); },
        [&](const Ref<DeclBuffer>& decl) {
          if (Sums* sums = find(decl->buffer->data)) {
            sums->fits = sums->fits && !sums->before.defined();
            sums->before = decl->buffer;
          }
        },
        [&](const Ref<BufferStore>& store, Visitor& v) {
          Sums* sums = find(store->buffer->data);
          if (!sums) return v.descend(store);
          auto step = step_of(*store);
          const bool all = store->indices[0].dtype().lanes == sums->lanes && !store->predicate.defined();
          const bool begins = all && is_zero(store->value);
          sums->fits = sums->fits && (begins || step) && place_of(*sums, store->indices);
          sums->has_step |= step.has_value();
          if (!step) return v.descend(store);
          v(step->unsigned_bytes);
          v(step->signed_bytes);
        },
        [&](const Ref<BufferLoad>& load) {
          if (Sums* sums = find(load->buffer->data)) {
            const bool all = load->indices[0].dtype().lanes == sums->lanes && !load->predicate.defined();
            sums->fits = sums->fits && all && place_of(*sums, load->indices);
          }
        },
        [&](const Ref<Call>& call) {
          // Whoever has the address may do anything.
          for (const NodeRef& argument : call->args) {
            const Ref<Var> pointer = argument.cast<Var>();
            if (Sums* sums = pointer.defined() ? find(pointer) : nullptr) sums->fits = false;
          }
        });
  }

  static bool is_zero(const Expr& value) {
    const Broadcast* all = value.as<Broadcast>();
    return all && is_const_int(all->value, 0);
  }

  /// The factors of what is added; those of lanes that do not take part are zeros.
  static std::optional<Factors> step_of(const BufferStore& store) {
    BufferStore whole = store;
    whole.predicate = {};
    if (store.predicate.defined()) {
      whole.value = rewrite(store.value, [&](const Ref<BufferLoad>& load, Rewriter& r) -> Expr {
        if (load->buffer != store.buffer) return r.descend(load);
        return make<BufferLoad>({load->buffer, load->indices, {}}, load.span());
      });
    }
    auto step = ReductionStep::of(whole);
    if (!step || !step->is_sum()) return {};
    auto factors = factors_of(step->operand());
    if (factors && store.predicate.defined()) {
      for (Expr* bytes : {&factors->unsigned_bytes, &factors->signed_bytes}) {
        *bytes =
            make<Select>({store.predicate, *bytes, broadcast(zero(bytes->dtype().element()), bytes->dtype().lanes)});
      }
    }
    return factors;
  }

  /// Different vectors of it in a tile.
  double vectors_of(const Expr& bytes) const {
    double count = 1;
    for (const Ref<For>& loop : unrolled_) {
      if (uses_var(bytes, loop->loop_var)) count *= static_cast<double>(const_int(loop->extent).value_or(1));
    }
    return count;
  }

  Stmt changed(const Stmt& body) {
    return rewrite(
        body,
        [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
          if (loop->kind != ForKind::kUnrolled) return r.descend(loop);
          unrolled_.push_back(loop);
          Stmt after = r.descend(loop);
          unrolled_.pop_back();
          return after;
        },
        [&](const Ref<Allocate>& allocate, Rewriter& r) -> Stmt {
          Sums* sums = find(allocate->buffer_var);
          if (!sums) return r.descend(allocate);
          const Buffer& before = *sums->before;
          auto size = const_int(before.shape[0]);
          sums->after = decl_buffer({i32(*size / kGroup)}, before.dtype, before.name, "local");
          return make<Allocate>(
              {sums->after->data, allocate->dtype, sums->after->shape, allocate->condition, r(allocate->body), {}},
              allocate.span());
        },
        [&](const Ref<DeclBuffer>& decl, Rewriter& r) -> Stmt {
          Sums* sums = find(decl->buffer->data);
          return sums ? make<DeclBuffer>({sums->after, r(decl->body)}, decl.span()) : r.descend(decl);
        },
        [&](const Ref<BufferStore>& s, Rewriter& r) -> Stmt {
          Sums* sums = find(s->buffer->data);
          if (!sums) return r.descend(s);
          Expr place = *place_of(*sums, s->indices);
          auto step = step_of(*s);
          if (!step) return store(sums->after, broadcast(i32(0), sums->lanes / kGroup), {place});
          // All vectors of the flipped operand share corrections, so flip the operand with more vectors.
          if (step->flipped && vectors_of(step->unsigned_bytes) < vectors_of(step->signed_bytes)) {
            std::swap(step->unsigned_bytes, step->signed_bytes);
          }
          return store(sums->after, added(*step, load(sums->after, {place}), r), {place});
        },
        [&](const Ref<BufferLoad>& l, Rewriter& r) -> Expr {
          Sums* sums = find(l->buffer->data);
          if (!sums) return r.descend(l);
          std::vector<Expr> lanes;
          for (int lane = 0; lane < sums->lanes; ++lane) lanes.push_back(i32(std::min(lane, sums->lanes / kGroup)));
          return make<Shuffle>({{load(sums->after, {*place_of(*sums, l->indices)}), i32(0)}, lanes});
        });
  }

  Expr added(const Factors& step, const Expr& sum, Rewriter& r) const {
    const int all = sum.dtype().lanes;
    const ProcessorInstruction& instruction = *dot_of(target_, all);
    const int once = instruction.lanes;
    const DataType type = sum.dtype().with_lanes(once);
    auto dot = [&](const Expr& start, const Expr& a, const Expr& b) {
      return call(type, "tir.call_llvm_pure_intrin", {string_imm(std::string(instruction.name)), start, a, b});
    };
    auto added_part = [&](const Expr& start, const Expr& a, const Expr& b) {
      if (!step.flipped) return dot(start, a, b);
      Expr signs = broadcast(i32(kSigns), once);
      Expr flipped = call(type, "tir.bitwise_xor", {a, signs});
      return dot(start, flipped, b) - dot(broadcast(i32(0), once), signs, b);
    };
    auto whole = [&](const Expr& bytes) {
      const int lanes = bytes.dtype().lanes;
      if (lanes == all * kGroup) return bits_as(sum.dtype(), r(bytes));
      std::vector<Expr> order;
      for (int lane = 0; lane < all * kGroup; ++lane) order.push_back(i32(std::min(lane, lanes)));
      return bits_as(sum.dtype(), make<Shuffle>({{r(bytes), zero(bytes.dtype().element())}, order}));
    };
    Expr a = whole(step.unsigned_bytes), b = whole(step.signed_bytes);
    if (once == all) return added_part(sum, a, b);
    std::vector<Expr> parts, order;
    for (int first = 0; first < all; first += once) {
      std::vector<Expr> lanes;
      for (int lane = 0; lane < once; ++lane) {
        lanes.push_back(i32(first + lane));
        order.push_back(i32(first + lane));
      }
      auto part = [&](const Expr& whole) { return Expr(make<Shuffle>({{whole}, lanes})); };
      parts.push_back(added_part(part(sum), part(a), part(b)));
    }
    return make<Shuffle>({parts, order});
  }

  const Target& target_;
  arith::Analyzer analyzer_;
  std::unordered_map<NodeRef, Sums> sums_;
  std::vector<Ref<For>> unrolled_;  ///< around
};

}  // namespace

int64_t group_of(const Expr& operand, const Target& target) {
  return factors_of(operand) && dot_of(target, target.vector_bits / 32) ? kGroup : 1;
}

PassResult form_dot_products(const Ref<PrimFunc>& func, PassContext& context) {
  return with_body(func, Groups(context.target).run(func->body));
}

}  // namespace tilewright::lower
