// Tensor intrinsics. Each one has a description, a program that defines what it computes, and an implementation, the
// code that tensorize inserts.
//
//   description                                   implementation
//   for i, k in T.grid(16, 4):                    a = T.reinterpret("int32", A[0:4])
//     with T.block("update"):                     C[0:16] = T.call_llvm_pure_intrin(
//       vi, vk = T.axis.remap("SR", [i, k])         "int32x16", "llvm.x86.avx512.vpdpbusd.512", C[0:16], ...)
//       C[vi] = C[vi] + A[vk] * B[vi, vk]
//
// tensorize replaces a block that matches the description by one with the implementation as its body. Analyses and the
// interpreter cannot interpret the machine instructions in that body, so they use the description instead. They
// recognize the block by its body: it is the implementation, with views in place of the parameters. No annotation is
// needed, so the block is still recognized after printing and parsing, JSON and replay.
//
// There is one table per process (Python: tilewright.TensorIntrin), which several threads may use at once. Nothing
// checks that an implementation computes what its description says.
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
  bool compact = true;                ///< buffers without strides that it accesses by pointer must be contiguous

  /// `desc` and `impl` with 64-bit indices. register_tensor_intrin() derives them; null if that is impossible.
  Ref<PrimFunc> wide_desc{}, wide_impl{};

  /// Returns the single block of a description or implementation; null if the function has another form.
  static Ref<Block> block_of(const Ref<PrimFunc>& func);
};

/// ArgumentError "tensor-intrin/signature" if the buffers of description and implementation differ, and
/// "tensor-intrin/name" if the name is registered and `replace` is not set.
Status register_tensor_intrin(TensorIntrin intrin, bool replace = false);
/// Returns null if no intrinsic has that name, and the callback (below) registers none.
std::shared_ptr<const TensorIntrin> find_tensor_intrin(std::string_view name);
/// Sets a callback for names that are not in the table. It may register the intrinsic: families of intrinsics of any
/// size are created on demand, for example when a trace from another process is replayed. It is called without a lock
/// and must not throw.
void set_tensor_intrin_source(std::function<void(std::string_view)> source);
/// Sorted.
std::vector<std::string> tensor_intrin_names();

/// Whether the call is a machine instruction or an external function, whose meaning the interpreter does not know.
bool is_machine_call(const Call& call);

/// If the block is an implementation with machine calls, returns it with the description as its body. Returns the same
/// pointer for other blocks.
Ref<Block> described(const Ref<Block>& block);
/// Replaces all such blocks of a module.
Ref<Module> described(const Ref<Module>& module);

}  // namespace tilewright
