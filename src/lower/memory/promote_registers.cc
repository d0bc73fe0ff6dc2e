// Replace buffers of scope "local" by registers.
//
//   Before                                        After
//   acc = T.allocate([32], "float32", "local")    acc_0 = T.allocate([1], "float32x16", "local")
//   acc[T.Ramp(0, 1, 16)] = ...                   acc_1 = T.allocate([1], "float32x16", "local")
//   acc[T.Ramp(16, 1, 16)] = ...                  acc_0[0] = ...
//                                                 acc_1[0] = ...
//
// A slot is one value of the type of its accesses; the code generator makes it a value in SSA form, carried through
// serial loops as a phi, never memory. A slot is as wide as the widest access to its elements; a smaller access
// extracts or inserts lanes. Lanes that a store's predicate masks off keep their value only where some access may read
// them: otherwise the accumulators of a partial tile would be blended with themselves in each step.
//
// Needs      constant indices (unroll_loops)
// Ensures    every buffer of scope "local" is either a set of slots or reported with the reason why not; those that are
//            not stay arrays on the stack
// Placement  after unroll_loops
#include <algorithm>
#include <map>
#include <unordered_set>

#include "ir/build.h"
#include "ir/pointer_uses.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/passes.h"
#include "lower/vector/vector_math.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

/// Elements start, start + stride, ...
struct Span {
  int64_t start;
  int lanes;
  int64_t stride = 1;
};

/// A load, and the lanes that it reads: those for which its predicate holds.
struct Look {
  Span span;
  Expr predicate;  ///< may be absent: all lanes
};

struct RegisterSlot {
  int64_t start;
  int lanes;
  Ref<Buffer> buffer;
};

/// A local buffer: how it is accessed, then its slots.
struct LocalBuffer {
  std::string name;
  DataType dtype;
  int64_t size = 0;
  int64_t stride = 1;  ///< stride of the vector accesses; elements are numbered so that these are consecutive
  std::vector<Span> spans;
  std::vector<Look> looks;
  std::unordered_set<NodeRef> inside;  ///< variables that are defined where it lives
  std::string problem;
  std::vector<RegisterSlot> slots;
  SpanId where = 0;
};

std::optional<Span> constant_span(const Expr& index, int lanes) {
  if (const Ramp* ramp = index.as<Ramp>()) {
    auto base = const_int(ramp->base), stride = const_int(ramp->stride);
    if (base && stride && *stride >= 1) return Span{*base, lanes, *stride};
    return std::nullopt;
  }
  if (const Broadcast* same = index.as<Broadcast>()) {
    if (auto value = const_int(same->value)) return Span{*value, 1};
    return std::nullopt;
  }
  if (auto value = const_int(index)) return Span{*value, 1};
  return std::nullopt;
}

std::optional<int64_t> integer_at(const Expr& vector, int lane) {
  if (const Broadcast* same = vector.as<Broadcast>()) return const_int(same->value);
  if (const Ramp* ramp = vector.as<Ramp>()) {
    auto base = const_int(ramp->base), stride = const_int(ramp->stride);
    if (base && stride) return *base + lane * *stride;
  }
  return std::nullopt;
}

/// Whether a predicate holds for a lane, where that is known.
std::optional<bool> holds_at(const Expr& predicate, int lane) {
  if (const And* both = predicate.as<And>()) {
    auto a = holds_at(both->a, lane), b = holds_at(both->b, lane);
    if ((a && !*a) || (b && !*b)) return false;
    return a && b ? std::optional<bool>(true) : std::nullopt;
  }
  std::optional<bool> known;
  auto compare = [&](const auto* node, auto holds) {
    if (!node) return;
    auto a = integer_at(node->a, lane), b = integer_at(node->b, lane);
    if (a && b) known = holds(*a, *b);
  };
  compare(predicate.as<LT>(), std::less<>());
  compare(predicate.as<LE>(), std::less_equal<>());
  compare(predicate.as<GT>(), std::greater<>());
  compare(predicate.as<GE>(), std::greater_equal<>());
  return known;
}

bool has_predicate(const Look& look) { return look.predicate.defined(); }

std::unordered_set<NodeRef> variables_of(const Stmt& body) {
  std::unordered_set<NodeRef> found;
  visit(body, [&](const Ref<Var>& v, Visitor& walk) {
    if (walk.role() == Role::kDef) found.insert(v);
  });
  return found;
}

/// Whether an expression has one value wherever these variables are in scope.
bool is_steady(const Expr& expr, const std::unordered_set<NodeRef>& inside) {
  return !has_node<BufferLoad, Call>(expr) && !uses_any_of(expr, inside);
}

class Promoter {
 public:
  Promoter(PassContext& context) : context_(context) {}

  Stmt run(const Stmt& body) {
    visit(body, [&](const Ref<Allocate>& allocate) {
      if (!is_local(*allocate)) return;
      LocalBuffer local;
      local.name = allocate->buffer_var->name_hint;
      local.dtype = allocate->dtype;
      local.where = allocate.span();
      auto size = const_int(allocate->extents[0]);
      if (size) local.size = *size;
      local.problem = why_not_in_registers(*allocate, context_.target);
      if (local.problem.empty() && allocate->dtype.is_vector()) local.problem = "its elements are vectors";
      locals_.emplace(allocate->buffer_var, std::move(local));
      order_.push_back(allocate->buffer_var);
    });
    if (locals_.empty()) return body;
    collect(body);
    visit(body, [&](const Ref<Allocate>& allocate) {
      LocalBuffer* local = find(allocate->buffer_var);
      if (local && any_of(local->looks, has_predicate)) {
        local->inside = variables_of(allocate->body);
      }
    });
    for (const NodeRef& v : order_) finish(locals_.at(v));
    return replace(body);
  }

 private:
  LocalBuffer* find(const NodeRef& data) { return find_value(locals_, data); }
  LocalBuffer* promoted(const NodeRef& data) {
    LocalBuffer* local = find(data);
    return local && local->problem.empty() ? local : nullptr;
  }

  /// `seen`: a load, under this predicate.
  void note(const Ref<Buffer>& buffer, const Expr& index, int lanes, const Expr* seen = nullptr) {
    LocalBuffer* local = find(buffer->data);
    if (!local || !local->problem.empty()) return;
    auto span = constant_span(index, lanes);
    if (!span) {
      local->problem = "the index of an access is not constant: a loop over it has no constant extent, or stays rolled";
    } else if (span->start < 0) {
      local->problem = "an access is out of bounds";
    } else if (buffer->dtype != local->dtype) {
      local->problem = "it is also seen as " + buffer->dtype.str();
    } else {
      local->size = std::max(local->size, span->start + (span->lanes - 1) * span->stride + 1);
      local->spans.push_back(*span);
      if (seen) local->looks.push_back({*span, *seen});
    }
  }

  /// A tile that is vectorized along another dimension than its last: elements are numbered along that one.
  static void turn(LocalBuffer& local) {
    for (const Span& span : local.spans) {
      if (span.lanes == 1) continue;
      if (local.stride != 1 && span.stride != local.stride)
        local.problem = "vector accesses to it have several strides";
      if (span.stride != 1) local.stride = span.stride;
    }
    for (const Span& span : local.spans) {
      if (span.lanes > 1 && span.stride != local.stride) local.problem = "vector accesses to it have several strides";
    }
    if (local.stride == 1 || !local.problem.empty()) return;
    local.size = (local.size + local.stride - 1) / local.stride * local.stride;
    for (Span& span : local.spans) span = renumber(local, span);
    for (Look& look : local.looks) look.span = renumber(local, look.span);
  }
  static Span renumber(const LocalBuffer& local, const Span& span) {
    if (local.stride == 1) return span;
    int64_t columns = local.size / local.stride;
    return {span.start % local.stride * columns + span.start / local.stride, span.lanes, 1};
  }

  void collect(const Stmt& body) {
    visit(
        body,
        [&](const Ref<BufferLoad>& load, Visitor& v) {
          note(load->buffer, load->indices[0], Expr(load).dtype().lanes, &load->predicate);
          v(load->indices[0]);
          v(load->predicate);
        },
        [&](const Ref<BufferStore>& store, Visitor& v) {
          note(store->buffer, store->indices[0], store->value.dtype().lanes);
          // A buffer that a schedule made has no declaration in the script: report the line of its first store.
          LocalBuffer* local = find(store->buffer->data);
          if (local && local->where == 0) local->where = store.span();
          v(store->value);
          v(store->indices[0]);
          v(store->predicate);
        },
        [&](const Ref<For>& loop) {
          if (loop->kind == ForKind::kParallel) refuse_shared(loop);
        },
        [&](const Ref<DeclBuffer>& decl, Visitor& v) { v(decl->body); },
        [&](const Ref<Call>& call) {
          if (const BufferLoad* element = addressed_element(call)) keep_in_memory(element->buffer->data);
        },
        [&](const Ref<Var>& v, Visitor& walk) {
          if (walk.role() != Role::kDef) keep_in_memory(v);
        });
  }

  void keep_in_memory(const Ref<Var>& data) {
    LocalBuffer* local = find(data);
    if (local && local->problem.empty()) local->problem = "its address is used";
  }

  /// A buffer outside of a parallel loop is memory for the threads inside.
  void refuse_shared(const Ref<For>& loop) {
    for_each_free_var(loop->body, [&](const Ref<Var>& v) {
      LocalBuffer* local = find(v);
      if (local && local->problem.empty())
        local->problem = "threads of parallel loop '" + loop->loop_var->name_hint + "' share it";
    });
  }

  /// Widest accesses first; what overlaps them partly joins the two.
  void finish(LocalBuffer& local) {
    if (local.problem.empty()) turn(local);
    Promotion report{context_.function, local.name, local.problem.empty(), 0, local.problem, local.where};
    if (local.problem.empty()) {
      std::vector<Span> spans = local.spans;
      std::ranges::sort(spans, [](const Span& a, const Span& b) {
        return a.lanes != b.lanes ? a.lanes > b.lanes : a.start < b.start;
      });
      std::map<int64_t, int> slots;  // start -> lanes, disjoint
      for (const Span& span : spans) {
        int64_t start = span.start, end = span.start + span.lanes;
        auto it = slots.upper_bound(start);
        if (it != slots.begin()) --it;
        while (it != slots.end() && it->first < end) {
          int64_t other_end = it->first + it->second;
          if (other_end <= start) {
            ++it;
            continue;
          }
          start = std::min(start, it->first);
          end = std::max(end, other_end);
          it = slots.erase(it);
        }
        slots[start] = static_cast<int>(end - start);
      }
      for (const auto& [start, lanes] : slots) {
        Ref<Buffer> buffer = decl_buffer({i32(1)}, local.dtype.with_lanes(lanes),
                                         local.name + "_" + std::to_string(local.slots.size()), "local");
        local.slots.push_back({start, lanes, buffer});
        int bits = std::max<int>(8, local.dtype.bits) * lanes;
        report.registers += (bits + context_.target.vector_bits - 1) / context_.target.vector_bits;
      }
    }
    context_.promotions.push_back(std::move(report));
  }

  static const RegisterSlot& slot_of(const LocalBuffer& local, int64_t element) {
    auto it = std::upper_bound(local.slots.begin(), local.slots.end(), element,
                               [](int64_t e, const RegisterSlot& slot) { return e < slot.start; });
    return *std::prev(it);
  }

  static Expr read_slot(const RegisterSlot& slot) { return load(slot.buffer, {i32(0)}); }

  static Expr read(const LocalBuffer& local, const Span& span) {
    const RegisterSlot& slot = slot_of(local, span.start);
    Expr whole = read_slot(slot);
    if (slot.start == span.start && slot.lanes == span.lanes) return whole;
    std::vector<Expr> lanes;
    for (int i = 0; i < span.lanes; ++i) lanes.push_back(i32(span.start - slot.start + i));
    return make<Shuffle>({{whole}, lanes});
  }

  /// Whether a load may see lanes that a store masks off.
  static bool is_masked_lane_seen(const LocalBuffer& local, const Span& span, const Expr& predicate) {
    for (const Look& look : local.looks) {
      int64_t end = look.span.start + look.span.lanes;
      if (end <= span.start || span.start + span.lanes <= look.span.start) continue;
      bool same = look.predicate.defined() && look.span.start == span.start && look.span.lanes == span.lanes &&
                  same_expr(look.predicate, predicate) && is_steady(predicate, local.inside);
      if (same) continue;
      if (span.lanes == 1) return true;
      for (int64_t e = std::max(look.span.start, span.start); e < std::min(end, span.start + span.lanes); ++e) {
        if (holds_at(predicate, static_cast<int>(e - span.start)) == true) continue;
        bool all = !look.predicate.defined() || look.span.lanes == 1;
        if (all || holds_at(look.predicate, static_cast<int>(e - look.span.start)) != false) return true;
      }
    }
    return false;
  }

  static Stmt write(const LocalBuffer& local, const Span& span, const Expr& value, const Expr& predicate) {
    const RegisterSlot& slot = slot_of(local, span.start);
    Expr next = value;
    if (predicate.defined() && is_masked_lane_seen(local, span, predicate)) {
      Expr old = read(local, span);
      next = make<Select>({predicate, next, old});
    }
    if (slot.start != span.start || slot.lanes != span.lanes) {
      // The new lanes among the old ones.
      std::vector<Expr> lanes;
      int64_t first = span.start - slot.start;
      for (int i = 0; i < slot.lanes; ++i) {
        bool fresh = i >= first && i < first + span.lanes;
        lanes.push_back(i32(fresh ? slot.lanes + i - first : i));
      }
      next = make<Shuffle>({{read_slot(slot), next}, lanes});
    }
    return store(slot.buffer, next, {i32(0)});
  }

  Stmt replace(const Stmt& body) {
    return rewrite(
        body,
        [&](const Ref<BufferLoad>& load, Rewriter& r) -> Expr {
          const LocalBuffer* local = promoted(load->buffer->data);
          if (!local) return r.descend(load);
          int lanes = Expr(load).dtype().lanes;
          Span span = renumber(*local, *constant_span(load->indices[0], lanes));
          return to_lanes(read(*local, span), lanes);
        },
        [&](const Ref<BufferStore>& store, Rewriter& r) -> Stmt {
          const LocalBuffer* local = promoted(store->buffer->data);
          if (!local) return r.descend(store);
          Span span = renumber(*local, *constant_span(store->indices[0], store->value.dtype().lanes));
          return write(*local, span, r(store->value), r(store->predicate));
        },
        [&](const Ref<DeclBuffer>& decl, Rewriter& r) -> Stmt {
          return promoted(decl->buffer->data) ? r(decl->body) : Stmt(r.descend(decl));
        },
        [&](const Ref<Allocate>& allocate, Rewriter& r) -> Stmt {
          const LocalBuffer* local = promoted(allocate->buffer_var);
          if (!local) return r.descend(allocate);
          Stmt inner = r(allocate->body);
          for (const RegisterSlot& slot : reversed(local->slots)) {
            Stmt declared = make<DeclBuffer>({slot.buffer, inner});
            inner = make<Allocate>({slot.buffer->data, slot.buffer->dtype, {i32(1)}, bool_imm(true), declared, {}});
          }
          return inner;
        });
  }

  PassContext& context_;
  std::unordered_map<NodeRef, LocalBuffer> locals_;
  std::vector<NodeRef> order_;
};

}  // namespace

PassResult promote_registers(const Ref<PrimFunc>& func, PassContext& context) {
  return with_body(func, Promoter(context).run(func->body));
}

}  // namespace tilewright::lower
