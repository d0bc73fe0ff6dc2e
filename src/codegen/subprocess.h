// Programs that the compiler runs: the C compiler that links exported libraries, NVIDIA's compiler.
#pragma once

#include <string>
#include <vector>

namespace tilewright::codegen {

/// Result of a process.
struct Outcome {
  bool found = false;  ///< whether the program exists
  int status = 0;      ///< status of waitpid()
  std::string output;  ///< stdout and stderr
};

/// Runs command[0] from PATH with its arguments, and waits.
Outcome run_program(const std::vector<std::string>& command);

}  // namespace tilewright::codegen
