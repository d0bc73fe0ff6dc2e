// Take vectors apart: what is computed by lanes becomes scalars; what is next to each other in memory is loaded and
// stored at once.
//
//   Before                                        After
//   B[T.Ramp(i * 4, 1, 4)] =                      a[T.Ramp(0, 1, 4)] = A[T.Ramp(i * 4, 1, 4)]
//       A[T.Ramp(i * 4, 1, 4)] * 2 + C[i * 8]     b[0] = a[0] * 2 + C[i * 8]
//                                                 b[1] = a[1] * 2 + C[i * 8]; ...
//                                                 B[T.Ramp(i * 4, 1, 4)] = b[T.Ramp(0, 1, 4)]
//
// A vector of 4, 8 or 16 bytes is loaded or stored at once if it begins at a multiple of its size, whatever the
// conditions around; one that is loaded on a condition of its own is not. Other lanes are loaded and stored one by one,
// all values before the first one is stored, as a vector store has it.
//
// Needs      kernels as functions
// Ensures    in kernels, vectors are stores of a load only, of as many contiguous elements on both sides, or four bytes
//            in registers, which are an operand of an instruction (ir/dot4.h)
// Placement  last: nothing else looks at lanes
#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/dot4.h"
#include "ir/pointer_uses.h"
#include "ir/refuse_at.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/gpu/kernel.h"
#include "lower/gpu/lane.h"
#include "lower/passes.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

class Scalars {
 public:
  explicit Scalars(const PrimFunc& kernel) { assume_sizes(kernel, analyzer_); }

  Result<Stmt> run(const Stmt& body) {
    visit(
        body, [&](const Ref<AllocateConst>& constant) { begins_anywhere_.insert(constant->buffer_var); },
        [&](const Ref<LetStmt>& let) {
          if (let->var.dtype().is_handle() && !is_in_arena(let->value)) begins_anywhere_.insert(let->var);
        });
    Stmt result = rewrite(
        body,
        [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
          analyzer_.bind(loop->loop_var, loop->min, loop->extent);
          return r.descend(loop);
        },
        [&](const Ref<BufferStore>& store, Rewriter&) -> Stmt {
          return store->value.dtype().is_scalar() ? with_registers(store) : by_lanes(store);
        },
        [&](const Ref<LetStmt>& let, Rewriter& r) -> Stmt {
          return let->value.dtype().is_vector() ? by_lanes(let, r) : Stmt(r.descend(let));
        });
    if (error_) return *error_;
    return result;
  }

 private:
  /// Whether it is the address of a buffer of the plan of shared memory, which begins at a multiple of all vectors.
  static bool is_in_arena(const Expr& pointer) {
    const BufferLoad* load = addressed_element(pointer);
    auto offset = load && load->indices.size() == 1 ? const_int(load->indices[0]) : std::nullopt;
    return offset && is_shared_scope(load->buffer->scope()) && *offset * load->buffer->dtype.bytes() % 16 == 0;
  }

  /// Whether the lanes are one piece of shared or global memory, which begins at a multiple of its size.
  bool is_one_access(const Ref<Buffer>& buffer, const std::vector<Expr>& indices, const Expr& predicate) {
    const Ramp* ramp = indices.size() == 1 ? indices[0].as<Ramp>() : nullptr;
    if (!ramp || !is_const_int(ramp->stride, 1) || predicate.defined() || !buffer->dtype.is_scalar()) return false;
    if (!is_shared_scope(buffer->scope()) && !is_global_scope(buffer->scope())) return false;
    if (begins_anywhere_.contains(buffer->data)) return false;
    const int64_t lanes = indices[0].dtype().lanes, bytes = lanes * buffer->dtype.bytes();
    if (bytes != 4 && bytes != 8 && bytes != 16) return false;
    if (buffer->data_alignment % bytes != 0 || !is_multiple(ramp->base, lanes)) return false;
    return !buffer->elem_offset.defined() || is_multiple(buffer->elem_offset, lanes);
  }

  bool is_multiple(const Expr& e, int64_t of) {
    const arith::ModularSet set = analyzer_.modular_set(e);
    return set.coeff % of == 0 && set.base % of == 0;
  }

  static Expr all_lanes(int lanes) { return ramp(i32(0), i32(1), lanes); }

  /// Registers for a vector.
  static Ref<Buffer> registers(const Ref<Buffer>& of, int lanes) {
    return decl_buffer({i32(lanes)}, of->dtype, of->name + "_lanes", "local");
  }

  static Stmt in_registers(const std::vector<Ref<Buffer>>& buffers, Stmt body) {
    for (const Ref<Buffer>& buffer : buffers) {
      body = make<DeclBuffer>({buffer, std::move(body)});
      body = make<Allocate>({buffer->data, buffer->dtype, buffer->shape, bool_imm(true), std::move(body), {}});
    }
    return body;
  }

  /// Replaces loads of contiguous vectors by registers, and adds the statements that load the registers to `loads`.
  Expr load_at_once(const Expr& value, std::vector<Ref<Buffer>>& buffers, std::vector<Stmt>& loads) {
    const int lanes = value.dtype().lanes;
    return rewrite(
        value,
        [&](const Ref<BufferLoad>& load, Rewriter&) -> Expr {
          if (load.dtype().lanes != lanes || !is_one_access(load->buffer, load->indices, load->predicate)) return load;
          buffers.push_back(registers(load->buffer, lanes));
          loads.push_back(make<BufferStore>({buffers.back(), load, {all_lanes(lanes)}, {}}, load.span()));
          return make<BufferLoad>({buffers.back(), {all_lanes(lanes)}, {}}, load.span());
        },
        [&](const Ref<Call>& call, Rewriter& r) -> Expr {
          return intrinsic_of(*call) == Intrinsic::k_if_then_else ? Expr(call) : Expr(r.descend(call));
        },
        [&](const Ref<Let>& let, Rewriter&) -> Expr { return let; });
  }

  void check(const Lane& lane, const NodeRef& node) {
    if (!lane.has_failed() || error_) return;
    error_ = refuse_at(node, "lower/not-on-device", "a vector is computed in a way that has no lanes of its own",
                       "leave the loop around it serial instead of vectorizing it");
  }

  /// A name for each lane.
  Stmt by_lanes(const Ref<LetStmt>& let, Rewriter& r) {
    std::vector<Ref<Buffer>> buffers;
    std::vector<Stmt> all;
    const Expr value = load_at_once(let->value, buffers, all);
    const DataType type = value.dtype();
    std::vector<std::pair<Ref<Var>, Expr>> values;
    std::vector<Expr> names, order;
    for (int number = 0; number < type.lanes; ++number) {
      Lane lane(number);
      values.emplace_back(var(let->var->name_hint + "_" + std::to_string(number), type.element()), lane(value));
      names.emplace_back(values.back().first);
      order.push_back(i32(number));
      check(lane, let);
    }
    Stmt body = substitute(let->body, {{let->var, make<Shuffle>({std::move(names), std::move(order)})}});
    all.push_back(with_names(values, r(body)));
    return in_registers(buffers, seq(std::move(all)));
  }

  static Stmt with_names(const std::vector<std::pair<Ref<Var>, Expr>>& values, Stmt body) {
    for (const auto& [name, value] : reversed(values)) body = make<LetStmt>({name, value, std::move(body)});
    return body;
  }

  /// Loads the operands of instructions on four bytes into registers, by statements in front of the store.
  Stmt with_registers(const Ref<BufferStore>& store) {
    std::vector<Ref<Buffer>> buffers;
    std::vector<Stmt> all;
    auto in_register = [&](const Expr& vector) -> Expr {
      if (vector.dtype().is_scalar()) return vector;
      Ref<Buffer> four = decl_buffer({i32(4)}, vector.dtype().element(), "bytes", "local");
      const BufferLoad* load = vector.as<BufferLoad>();
      const bool is_at_once = load && is_one_access(load->buffer, load->indices, load->predicate);
      Ref<BufferStore> fill = make<BufferStore>({four, vector, {all_lanes(4)}, {}}, store.span());
      all.push_back(is_at_once ? Stmt(fill) : by_lanes(fill));
      buffers.push_back(four);
      return make<BufferLoad>({four, {all_lanes(4)}, {}});
    };
    Expr value = rewrite(store->value, [&](const Ref<Call>& call, Rewriter& r) -> Expr {
      // Operands of T.if_then_else must not be loaded where its condition is false.
      if (intrinsic_of(*call) == Intrinsic::k_if_then_else) return call;
      auto products = Dot4::of(*call);
      if (!products || !products->has_vectors()) return r.descend(call);
      const Expr a = in_register(products->a), b = in_register(products->b);
      return make<Call>({call->dtype, call->op, {call->args[0], a, b, r(products->sum)}}, call.span());
    });
    if (buffers.empty()) return store;
    all.push_back(make<BufferStore>({store->buffer, value, store->indices, {}}, store.span()));
    return in_registers(buffers, seq(std::move(all)));
  }

  Stmt by_lanes(const Ref<BufferStore>& store) {
    const int lanes = store->value.dtype().lanes;
    const bool stores_once = is_one_access(store->buffer, store->indices, store->predicate);
    if (const BufferLoad* load = store->value.as<BufferLoad>();
        load && stores_once && load->buffer->dtype == store->buffer->dtype) {
      if (is_one_access(load->buffer, load->indices, load->predicate)) return store;
    }
    std::vector<Ref<Buffer>> buffers;
    std::vector<Stmt> all;
    // Loads at once come first: all values are there before the first one is stored.
    const Expr value = load_at_once(store->value, buffers, all);
    std::vector<std::pair<Ref<Var>, Expr>> values;
    std::vector<Stmt> stores;
    Ref<Buffer> results = stores_once ? registers(store->buffer, lanes) : Ref<Buffer>();
    for (int number = 0; number < lanes; ++number) {
      Lane lane(number);
      const Expr one = lane(value), place = lane(store->indices[0]);
      if (stores_once) {
        stores.push_back(make<BufferStore>({results, one, {i32(number)}, {}}, store.span()));
      } else {
        Ref<Var> v = var("lane_" + std::to_string(number), value.dtype().element());
        values.emplace_back(v, one);
        Stmt s = make<BufferStore>({store->buffer, v, {place}, {}}, store.span());
        if (store->predicate.defined()) s = make<IfThenElse>({lane(store->predicate), s, {}}, store.span());
        stores.push_back(std::move(s));
      }
      check(lane, store);
    }
    if (stores_once) {
      buffers.push_back(results);
      const Expr vector = make<BufferLoad>({results, {all_lanes(lanes)}, {}});
      stores.push_back(make<BufferStore>({store->buffer, vector, store->indices, {}}, store.span()));
    }
    all.push_back(with_names(values, seq(std::move(stores))));
    return in_registers(buffers, seq(std::move(all)));
  }

  arith::Analyzer analyzer_;
  std::unordered_set<NodeRef> begins_anywhere_;  ///< constants, and pointers into other memory
  std::optional<Diagnostic> error_;
};

}  // namespace

PassResult scalarize_vectors(const Ref<PrimFunc>& func, PassContext&) {
  if (!is_kernel(*func)) return func;
  TW_TRY(body, Scalars(*func).run(func->body));
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
