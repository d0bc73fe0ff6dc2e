// Programs that the compiler runs: the C compiler that links exported libraries, NVIDIA's compiler.
#pragma once

#include <string>
#include <vector>

namespace tilewright::codegen {

struct Outcome {
  bool found = false;  ///< whether there is such a program
  int status = 0;      ///< as waitpid() returns it
  std::string output;  ///< all that it printed
};

/// Runs a program, found along PATH, to its end.
Outcome run_program(const std::vector<std::string>& command);

}  // namespace tilewright::codegen
