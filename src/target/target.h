// What a program is compiled for.
//
// A target is written as TVM writes it, "llvm -mcpu=znver3 -num-cores=2", or "native" (this machine), or "interpreter".
// What the text leaves out is filled in: instruction sets and vector width from the processor's name; the number of
// cores from this process; cache sizes from this machine if it is the same model, otherwise from what is usual.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/hash.h"
#include "support/host_cpu.h"
#include "support/result.h"

namespace tilewright {

enum class TargetKind : uint8_t {
  kCpu,          ///< "llvm"
  kInterpreter,  ///< the reference interpreter; everything below is as for this machine
};

struct Target {
  TargetKind kind = TargetKind::kCpu;
  std::string cpu;                ///< LLVM's name of the processor
  tw_cpu_features features = {};  ///< instruction sets that generated code may use
  int vector_bits = 128;          ///< width of the registers that vector code should use
  int vector_registers = 16;      ///< how many of them there are
  int num_cores = 1;              ///< threads of a parallel loop
  int64_t l1_bytes = 0;           ///< data cache of one core
  int64_t l2_bytes = 0;           ///< of one core
  int64_t l3_bytes = 0;           ///< as far as one core can use it; 0: there is none

  /// This machine, as far as this process may use it.
  static Target host();
  static Target interpreter();
  /// "native", "interpreter", "llvm -mcpu=NAME -mattr=+F,-F -num-cores=N -vector-width=BITS -l1-bytes=N ...", or the
  /// same as a JSON object. Codes of errors: target/kind, target/option, target/cpu, target/feature, target/value,
  /// target/json.
  static Result<Target> parse(std::string_view text);

  /// The shortest text that parse() turns back into this target on this machine. The identity of a target in records.
  std::string str() const;
  /// The same as a JSON object.
  std::string json() const;

  bool has(std::string_view feature) const;
  std::vector<std::string> feature_names() const;
  /// All features that are known, for LLVM: "+avx2,-avx512f,...". Together with `cpu` it says exactly what may be used.
  std::string llvm_features() const;
  Target with_num_cores(int cores) const;
  Hash128 hash() const;
  friend bool operator==(const Target& a, const Target& b);
};

/// Names that "-mcpu=" takes.
std::vector<std::string> known_cpus();

}  // namespace tilewright
