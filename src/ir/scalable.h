// What T.vscale() may be: how many times 128 bits the registers of a processor with scalable vectors have. Arm's
// manuals leave these; the interpreter takes no other, and what is proved for each of them is proved.
#pragma once

#include "ir/expr.h"

namespace tilewright {

constexpr int kVscales[] = {1, 2, 4, 8, 16};
constexpr int kMaxVscale = 16;

bool uses_vscale(const Expr& e);
/// With the number in the place of T.vscale().
Expr with_vscale(const Expr& e, int vscale);

}  // namespace tilewright
