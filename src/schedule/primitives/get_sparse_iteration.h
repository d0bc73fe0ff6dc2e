#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct GetSparseIteration {
  std::string name;
  std::string func_name;
  using Members = Fields<&GetSparseIteration::name, &GetSparseIteration::func_name>;
  using Returns = BlockRV;
  static constexpr int kRequired = 1;
  static constexpr Family kFamily = Family::kLookup;
  static constexpr bool kOnIterations = true;
  static constexpr std::string_view kDoc = R"(Find the iteration over sparse axes with a name.

SparseTIR, arXiv 2207.04606, section 3.2.2.

Args:
    name: the iteration's name; exactly one iteration of the function has it.
    func_name: the function to look in; by default the one being worked on.

Returns:
    A handle for get_sp_iters, annotate and unannotate. It stays valid until the iteration is lowered.)";
};

}  // namespace tilewright::schedule
