// Sums that take the same away in each step of a loop take it away once behind the loop.
//
//   Before                                       After
//   loop: a = phi [a0, ...], [a2, loop]          loop: a = phi [a0, ...], [a1, loop]
//         b = phi [b0, ...], [b2, loop]                b = phi [b0, ...], [b1, loop]
//                                                      s = phi [0, ...], [s1, loop]
//         a1 = vpdpbusd(a, ...)                        a1 = vpdpbusd(a, ...)
//         a2 = a1 - t                                  b1 = vpdpbusd(b, ...)
//         b1 = vpdpbusd(b, ...)                        s1 = s + t
//         b2 = b1 - t                            exit: a1 - s1, b1 - s1
//
// Sums of bytes with signs are such: the instruction takes the bytes of one operand as unsigned, and what that adds is
// the same for all rows of a tile. All of it is integer arithmetic that wraps, so the order of its steps does not
// matter.
#pragma once

#include <llvm/IR/PassManager.h>

namespace tilewright::codegen {

struct SharedCorrections : llvm::PassInfoMixin<SharedCorrections> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace tilewright::codegen
