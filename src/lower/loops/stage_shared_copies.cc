// Take copies to shared memory apart into a load to registers and a store from there, so that a software pipeline can
// run them at different times.
//
//   Before                                                     After
//   for i in range(4):                                         L = T.alloc_buffer((4,), scope="local")
//     with T.block("S"):                                       for i in range(4):
//       T.block_attr({                                           with T.block("S_local"): L[i] = A[tx, i]
//         "tir.manifest_shared_memory_local_stage": 1})        for i in range(4):
//       S[tx, i] = A[tx, i]                                      with T.block("S"): S[tx, i] = L[i]
//
// The registers belong to a thread. Where the loops over threads are those of the copy, none around it, a buffer has
// the registers of all threads; those of a warp are memory of scope "warp" for CUDA (lower_warp_memory).
//
// Needs      blocks without axes
// Ensures    no block has the annotation. A block that is more than one store, or whose loops have no constant extents,
//            stays as it is
// Placement  before inject_software_pipelines, whose lists count both parts

#include "analysis/block_access_region.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "ir/warp_steps.h"
#include "lower/gpu/kernel.h"
#include "lower/loops/pipeline_plan.h"
#include "lower/passes.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

constexpr const char* kLocalStage = "tir.manifest_shared_memory_local_stage";

/// Loops around one block that is one store.
struct Copy {
  std::vector<Ref<For>> loops;  ///< outermost first
  Ref<BlockRealize> realize;
  Ref<BufferStore> store;

  static std::optional<Copy> of(Stmt s) {
    Copy copy;
    while (s.is<For>()) {
      copy.loops.push_back(s.cast<For>());
      s = Stmt(copy.loops.back()->body);
    }
    const BlockRealize* realize = s.as<BlockRealize>();
    if (!realize || !realize->block->annotations.has(kLocalStage) || !realize->block->body.is<BufferStore>()) return {};
    copy.realize = s.cast<BlockRealize>();
    copy.store = Stmt(realize->block->body).cast<BufferStore>();
    const bool is_plain = realize->block->alloc_buffers.empty() && !copy.store->predicate.defined() &&
                          all_of(copy.loops, [](const Ref<For>& loop) {
                            return is_bound(*loop) || (const_int(loop->extent) && const_int(loop->min));
                          });
    return is_plain ? std::optional(std::move(copy)) : std::nullopt;
  }

  /// A statement in copies of the loops and the block.
  Stmt around(const Stmt& body, const std::string& name, const Annotations& annotations) const {
    Block block;
    block.name_hint = name;
    block.annotations = annotations;
    block.body = body;
    analysis::BlockAccess access = analysis::block_access_region(make<Block>(Block(block)));
    block.reads = std::move(access.reads);
    block.writes = std::move(access.writes);
    Stmt s =
        make<BlockRealize>({{}, realize->predicate, make(std::move(block), realize->block.span())}, realize.span());
    for (const Ref<For>& loop : reversed(loops)) s = with_body(loop, std::move(s));
    return renew_defs(s);
  }

  /// `tags`: of the axes that loops around are bound to.
  Stmt in_two_parts(const std::vector<std::string>& tags, bool has_warps, Ref<Buffer>& registers) const {
    std::vector<Expr> shape, place;
    auto add = [&](const Ref<For>& loop) {
      shape.push_back(loop->extent);
      place.push_back(loop->loop_var - loop->min);
    };
    auto is_own = [&](const Ref<For>& loop) {
      const std::string tag = is_bound(*loop) ? loop->thread_binding->thread_tag : "";
      return !tag.empty() && !is_contained(tags, tag);
    };
    Ref<For> lanes;
    for (const Ref<For>& loop : loops) {
      if (!is_own(loop)) continue;
      if (has_warps && loop->thread_binding->thread_tag == "threadIdx.x" && is_const_int(loop->extent, kWarpLanes)) {
        lanes = loop;
      } else {
        add(loop);
      }
    }
    if (lanes.defined()) add(lanes);
    const bool of_warp = lanes.defined();
    for (const Ref<For>& loop : loops) {
      if (!is_bound(*loop)) add(loop);
    }
    if (shape.empty()) {
      shape.push_back(i32(1));
      place.push_back(i32(0));
    }
    const Block& block = *realize->block;
    registers = decl_buffer(shape, store->buffer->dtype, store->buffer->name + "_local", of_warp ? "warp" : "local");
    Annotations annotations = block.annotations, of_load;
    annotations.erase(kLocalStage);
    of_load = annotations;
    of_load.erase(kDoubleBuffer);
    Stmt loads = make<BufferStore>({registers, store->value, place, {}}, store.span());
    Stmt stores = make<BufferStore>({store->buffer, load(registers, place), store->indices, {}}, store.span());
    return seq({around(loads, block.name_hint + "_local", of_load), around(stores, block.name_hint, annotations)});
  }
};

}  // namespace

PassResult stage_shared_copies(const Ref<PrimFunc>& func, PassContext& context) {
  std::vector<std::string> tags;
  const bool has_warps = context.target.kind == TargetKind::kCuda;
  auto bound = [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
    if (!is_bound(*loop)) return r.descend(loop);
    tags.push_back(loop->thread_binding->thread_tag);
    Stmt inner = r.descend(loop);
    tags.pop_back();
    return inner;
  };
  Stmt body = rewrite(func->body, bound, [&](const Ref<SeqStmt>& all, Rewriter& r) -> Stmt {
    std::vector<Stmt> items;
    Block block;
    for (const Stmt& item : all->seq) {
      auto copy = Copy::of(item);
      if (!copy) {
        items.push_back(r(item));
        continue;
      }
      Ref<Buffer> registers;
      items.push_back(copy->in_two_parts(tags, has_warps, registers));
      block.alloc_buffers.emplace_back(registers);
    }
    if (block.alloc_buffers.empty()) return seq(std::move(items));
    block.body = seq(std::move(items));
    return realized(make(std::move(block)));
  });
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
