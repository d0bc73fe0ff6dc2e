// Declares the frames of IRBuilder that are used by more than one source file. The other frames are local to the source
// files that create them.
#pragma once

#include "ir/buffer_domain.h"
#include "script/ir_builder.h"

namespace tilewright::script {

struct ModuleFrame final : Frame {
  ModuleFrame() : Frame(FrameKind::kModule) {}
  Ref<Module> result{make<Module>({})};
  std::vector<std::pair<std::string, Type>> declared;  ///< name and result type of functions, defined or not
  bool has_attrs = false;
  void check_place(IRBuilder& builder) override;
  void finish(IRBuilder& builder) override;
};

struct PrimFuncFrame final : Frame {
  explicit PrimFuncFrame(bool is_private) : Frame(FrameKind::kPrimFunc), is_private(is_private) {}
  bool is_private;
  std::optional<std::string> name;
  std::vector<Def<Var>> params;
  std::vector<std::pair<Ref<Var>, Def<Buffer>>> buffer_map;
  std::optional<Annotations> attrs;
  Type ret_type;
  std::vector<Ref<IterVar>> env_threads;
  std::vector<Def<Buffer>> root_alloc_buffers;
  std::vector<Ref<Axis>> axes;
  Annotations root_annotations;  ///< declarations about buffers, outside of all blocks
  Ref<Block> without_axes;  ///< the last block without axes directly inside, with the regions that the script declares
  void check_place(IRBuilder& builder) override;
  void finish(IRBuilder& builder) override;
  bool is_param(const Ref<Var>& v) const;
};

struct BlockFrame final : Frame {
  BlockFrame(std::string name, bool no_realize)
      : Frame(FrameKind::kBlock), name(std::move(name)), no_realize(no_realize) {}
  std::string name;
  bool no_realize;
  std::vector<Ref<IterVar>> iter_vars;
  std::vector<Expr> iter_values;
  std::optional<std::vector<Ref<BufferRegion>>> reads, writes;
  std::optional<Annotations> annotations;
  std::vector<BufferDomain> domains;
  std::vector<DisjointBuffers> disjoint;
  Expr predicate;
  Stmt init;
  std::vector<Def<Buffer>> alloc_buffers;
  std::vector<Ref<MatchBufferRegion>> match_buffers;
  void check_place(IRBuilder& builder) override;
  void finish(IRBuilder& builder) override;
};

struct SparseIterationFrame final : Frame {
  SparseIterationFrame() : Frame(FrameKind::kSparseIteration) {}
  std::string name;
  std::vector<Ref<SpIterVar>> iter_vars;
  std::optional<Annotations> annotations;
  Stmt init;
  void check_place(IRBuilder& builder) override;
  void finish(IRBuilder& builder) override;
};

/// A nest of loops, outermost first.
struct ForFrame final : Frame {
  ForFrame() : Frame(FrameKind::kFor) {}
  struct Loop {
    Ref<Var> var;
    Expr min, extent;
    ForKind kind = ForKind::kSerial;
    std::string thread;
    Annotations annotations;
  };
  std::vector<Loop> loops;
  void finish(IRBuilder& builder) override;
};

/// Discards the statements built inside: the parser continues with the body of a construct that failed.
struct DiscardFrame final : Frame {
  DiscardFrame() : Frame(FrameKind::kDiscard) {}
  void finish(IRBuilder&) override {}
};

[[noreturn]] void refuse(const char* code, std::string message, std::string hint = {});

/// Returns the innermost frame as an F; throws if it is another one ("`caller` belongs directly inside ...").
template <class F>
F& expect_inside(std::string_view caller, FrameKind kind) {
  IRBuilder& builder = IRBuilder::require(caller);
  F* frame = dynamic_cast<F*>(builder.innermost());
  if (frame == nullptr) {
    Frame* at = builder.innermost();
    refuse("builder/place",
           std::string(caller) + " belongs directly inside " + frame_name(kind) + ", here it is inside " +
               (at ? frame_name(at->kind) : "nothing"),
           "open that frame around it");
  }
  return *frame;
}

/// Returns the body of a function, with an implicit root block if it needs one. `as_said`: a block that may be the
/// root, with only the regions that the script declares.
Stmt complete_root(Stmt body, const std::vector<Def<Buffer>>& alloc_buffers, const Annotations& annotations,
                   const Ref<Block>& as_said);

}  // namespace tilewright::script
