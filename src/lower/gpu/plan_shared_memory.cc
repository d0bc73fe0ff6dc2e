// Put all shared memory of a kernel into one arena, in which buffers that are never alive together share bytes.
//
//   Before                                        After
//   S = T.allocate([64], "float32", "shared")     arena = T.allocate([256], "uint8", "shared")
//   ... S ...                                     S: T.handle("float32", "shared") = T.address_of(arena_1[0])
//   U = T.allocate([64], "float16", "shared")     ... S ...
//   ... U ...                                     U: T.handle("float16", "shared") = T.address_of(arena_1[0])
//                                                 ... U ...
//
// A buffer is alive from its first access to its last; where it is allocated outside of a loop, an access inside of the
// loop makes it alive in the whole loop, since the next iteration may find what this one has left.
//
// Barriers are placed in the same pass (place_barriers.h): threads have to wait between uses of the same bytes, and
// without that, the program between two passes would have a race.
//
// Needs      kernels as functions
// Ensures    at most one allocation of shared memory in a kernel, within what the target has. Each buffer begins at a
//            multiple of 16 bytes, the widest vector access; of 32 bytes, if fragments are loaded from it or stored to
//            it (CUDA C++ Programming Guide, warp matrix functions)
// Placement  after every pass that copies or moves accesses
#include <algorithm>

#include "ir/build.h"
#include "ir/fragments.h"
#include "ir/refuse_at.h"
#include "ir/traverse.h"
#include "lower/gpu/kernel.h"
#include "lower/gpu/place_barriers.h"
#include "lower/gpu/shared_arena.h"
#include "lower/passes.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

constexpr int64_t kAlignmentOfFragments = 32;

/// The allocations of shared memory in a kernel, and the arena that holds them.
struct Plan {
  std::vector<Ref<Allocate>> allocations;
  SharedArena arena;
};

class Lifetimes {
 public:
  Result<Plan> find(const Stmt& body) {
    visit(
        body,
        [&](const Ref<Allocate>& allocate) {
          if (is_shared_scope(scope_of(allocate->buffer_var))) note(allocate);
        },
        [&](const Ref<For>& loop, Visitor& v) { plan_.arena.loop(false, [&] { v.descend(loop); }); },
        [&](const Ref<While>& loop, Visitor& v) { plan_.arena.loop(false, [&] { v.descend(loop); }); },
        [&](const Ref<BufferStore>& store, Visitor& v) {
          v.descend(store);
          plan_.arena.touch(store->buffer->data);
          plan_.arena.next_statement();
        },
        [&](const Ref<Evaluate>& evaluate, Visitor& v) {
          v.descend(evaluate);
          if (is_fragment_step(evaluate->value)) align_for_fragments(*evaluate->value.as<Call>());
          plan_.arena.next_statement();
        },
        [&](const Ref<LetStmt>& let, Visitor& v) {
          v(let->value);
          plan_.arena.alias(*let);
          v(let->body);
        },
        [&](const Ref<Var>& v, Visitor& walk) {
          if (walk.role() == Role::kChild) plan_.arena.touch(v);
        },
        [&](const Ref<BufferLoad>& load) { plan_.arena.touch(load->buffer->data); },
        [&](const Ref<DeclBuffer>& decl, Visitor& v) {  // names it, and does nothing to it
          v(decl->body);
        },
        [&](const Ref<Buffer>&, Visitor&) {});
    if (error_) return *error_;
    return std::move(plan_);
  }

 private:
  void note(const Ref<Allocate>& allocate) {
    auto count = allocate->extents.size() == 1 ? const_int(allocate->extents[0]) : std::nullopt;
    if (!count) {
      if (!error_) {
        error_ =
            refuse_at(allocate, "lower/shared-size",
                      "the size of buffer '" + allocate->buffer_var->name_hint + "' in shared memory is not a constant",
                      "split the loops around it so that each block of threads works on a tile of constant size");
      }
      return;
    }
    const int64_t bytes = std::max<int64_t>(*count, 1) * allocate->dtype.bytes() * allocate->dtype.lanes;
    plan_.arena.allocate(allocate->buffer_var, bytes);
    plan_.allocations.push_back(allocate);
  }

  void align_for_fragments(const Call& step) {
    auto memory = step.args.size() == 8 ? Fragments::memory_of(step.args[5]) : std::nullopt;
    SharedTile* tile = memory ? plan_.arena.find(memory->data) : nullptr;
    if (tile) tile->alignment = kAlignmentOfFragments;
  }

  Plan plan_;
  std::optional<Diagnostic> error_;
};

}  // namespace

PassResult plan_shared_memory(const Ref<PrimFunc>& func, PassContext& context) {
  if (!is_kernel(*func)) return func;
  KernelLoops kernel = KernelLoops::of(func->body);
  TW_TRY(plan, Lifetimes().find(kernel.body));
  auto& [allocations, shared] = plan;
  if (allocations.empty()) return place_barriers(func, context);
  const int64_t size = shared.place(), most = context.target.max_shared_memory_per_block;
  if (most > 0 && size > most) {
    std::string parts;
    for (size_t i : indices_of(allocations)) {
      parts += (parts.empty() ? "" : ", ") + allocations[i]->buffer_var->name_hint + " " +
               std::to_string(shared.tiles()[i].bytes);
    }
    return refuse_at(allocations[0], "lower/shared-memory",
                     "a block of this kernel needs " + std::to_string(size) + " bytes of shared memory (" + parts +
                         "), and the target has " + std::to_string(most),
                     "use smaller tiles, or copy less than a whole tile at a time: compute_at a loop further inside");
  }
  const DataType byte = DataType::uint(8);
  Ref<Buffer> arena = decl_buffer({i32(std::max<int64_t>(size, 1))}, byte, "arena", "shared");
  Stmt body = rewrite(kernel.body, [&](const Ref<Allocate>& allocate, Rewriter& r) -> Stmt {
    const auto found = std::ranges::find(allocations, allocate);
    if (found == allocations.end()) return r.descend(allocate);
    const SharedTile& tile = shared.tiles()[static_cast<size_t>(found - allocations.begin())];
    Stmt inside = r(allocate->body);
    Expr address = call(DataType::handle(), "tir.address_of", {load(arena, {i32(tile.offset)})});
    return make<LetStmt>({allocate->buffer_var, address, inside}, allocate.span());
  });
  body = make<DeclBuffer>({arena, body});
  body = make<Allocate>({arena->data, byte, {arena->shape[0]}, bool_imm(true), body, {}});
  return place_barriers(with_body(func, kernel.around(std::move(body))), context);
}

}  // namespace tilewright::lower
