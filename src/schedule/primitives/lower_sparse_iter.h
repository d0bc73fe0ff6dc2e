#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct LowerSparseIter {
  std::string func_name;
  using Members = Fields<&LowerSparseIter::func_name>;
  using Returns = None;
  static constexpr int kRequired = 0;
  static constexpr bool kOnIterations = true;
  static constexpr std::string_view kDoc = R"(Make blocks and loops of the iterations over sparse axes.

Loops run over positions, and blocks begin where the extent of a loop is data. Sparse buffers become the arrays that hold
their elements. The blocks of an iteration are named after it, with a number: "spmm0" is the outermost one; the block
that sets initial values is "spmm_init".

SparseTIR, arXiv 2207.04606, sections 3.3.1 and 3.4.1, in one step.

Args:
    func_name: the function to lower; by default the one being worked on.)";
};

}  // namespace tilewright::schedule
