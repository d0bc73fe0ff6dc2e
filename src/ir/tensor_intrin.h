// Instructions on tensors, as data: what one computes, written as a program, and how it is written.
//
//   description                                   implementation
//   for i, k in T.grid(16, 4):                    a = T.reinterpret("int32", A[0:4])
//     with T.block("update"):                     C[0:16] = T.call_llvm_pure_intrin(
//       vi, vk = T.axis.remap("SR", [i, k])         "int32x16", "llvm.x86.avx512.vpdpbusd.512", C[0:16], ...)
//       C[vi] = C[vi] + A[vk] * B[vi, vk]
//
// tensorize puts the implementation where a block computes what the description says. From then on the block is known
// by its contract: what analyses and the interpreter cannot see into means what the description says. A block stands
// for an intrinsic by its text: its body is that of the implementation, over views in place of the parameters. So this
// survives printing, JSON, and replay.
//
// One table in a process, filled by those who know processors (Python: tilewright.TensorIntrin); safe to use from
// several threads. That description and implementation compute the same is the word of who registers them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/stmt.h"
#include "support/result.h"

namespace tilewright {

struct TensorIntrin {
  std::string name;
  Ref<PrimFunc> desc, impl;           ///< functions of the same buffers; the body of each is one block without axes
  std::vector<std::string> features;  ///< instruction sets that the implementation needs, by the names of targets
  bool compact = true;                ///< memory whose strides it does not state, and takes by pointer, is compact

  /// Both with indices of 64 bits, for programs that have those; registering makes them, null where that cannot be.
  Ref<PrimFunc> wide_desc{}, wide_impl{};

  /// The block that a function consists of; null if it does not.
  static Ref<Block> block_of(const Ref<PrimFunc>& func);
};

/// ArgumentError "tensor-intrin/signature" where the two do not fit together, "tensor-intrin/name" where the name is
/// taken and `replace` is not set.
Status register_tensor_intrin(TensorIntrin intrin, bool replace = false);
/// Null if there is none of that name, and the source registers none when it is asked.
std::shared_ptr<const TensorIntrin> find_tensor_intrin(std::string_view name);
/// Who is asked for a name that the table lacks, and may register it: intrinsics of any size are made when they are
/// named, as a trace of another process names them. It is called without a lock, and must not throw.
void set_tensor_intrin_source(std::function<void(std::string_view)> source);
/// Sorted.
std::vector<std::string> tensor_intrin_names();

/// A call that means something to a processor only: its effect is on state, or it names a function of another compiler.
bool is_machine_call(const Call& call);

/// The block with the description in place of an implementation that makes such calls; the same pointer if it is none.
Ref<Block> described(const Ref<Block>& block);
/// All blocks.
Ref<Module> described(const Ref<Module>& module);

}  // namespace tilewright
