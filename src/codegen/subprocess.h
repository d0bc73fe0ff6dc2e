// Programs that the compiler runs: the C compiler that links exported libraries, NVIDIA's compiler.
#pragma once

#include <string>
#include <vector>

namespace tilewright::codegen {

struct Outcome {
  bool found = false;  ///< whether the program exists
  int status = 0;      ///< status of waitpid()
  std::string output;  ///< stdout and stderr
};

/// Runs a program from PATH and waits for it.
Outcome run_program(const std::vector<std::string>& command);

}  // namespace tilewright::codegen
