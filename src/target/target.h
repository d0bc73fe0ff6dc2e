// The machine that a program is compiled for.
//
// A target is written as in TVM, "llvm -mcpu=znver3 -num-cores=2", or as "native" (this machine), "interpreter", or a
// tag such as "nvidia/nvidia-a100". It has a kind, the options of that kind, and optionally a host: the target of the
// code that launches kernels. One list of fields in target.cc defines the options of each kind, and from it text, JSON,
// equality and hash are derived.
//
// Omitted fields get defaults: instruction sets and vector width from the processor's name; the number of
// cores from this process; cache sizes from this machine if it is the same model, otherwise typical ones of the model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/hash.h"
#include "support/host_cpu.h"
#include "support/result.h"

namespace tilewright {

enum class TargetKind : uint8_t {
  kCpu,          ///< "llvm"
  kInterpreter,  ///< the reference interpreter; its processor is that of this machine
  kC,            ///< "c": a processor by way of C source
  kCuda,
  kHexagon,
  kOpenCl,
};

/// Kinds of targets by what runs the program.
enum class TargetSet : uint8_t {
  kCpu = 1,
  kGpu = 2,
  kMachines = kCpu | kGpu,
  kInterpreter = 4,
  kAll = kMachines | kInterpreter,
};

/// Fields of CPU targets.
struct CpuPart {
  std::string cpu;                ///< LLVM's name of the processor
  tw_cpu_features features = {};  ///< instruction sets that generated code may use
  int vector_bits = 128;          ///< width of the registers that vector code should use
  int vector_registers = 16;      ///< number of vector registers
  int num_cores = 1;              ///< threads of a parallel loop
  int64_t l1_bytes = 0;           ///< data cache of one core
  int64_t l2_bytes = 0;           ///< bytes of one core
  int64_t l3_bytes = 0;           ///< bytes that one core can use; 0: there is no L3
  int64_t vtcm_bytes = 0;         ///< tightly coupled memory for vectors; 0: there is none
};

/// Fields of GPU targets. "per_block": shared by the threads of a block.
struct GpuPart {
  std::string arch;                             ///< "sm_80"; empty: whatever the device is
  int max_threads_per_block = 1024;             ///< limit of a launch
  int max_num_threads = 1024;                   ///< number that schedules should use
  int thread_warp_size = 32;                    ///< threads in lockstep
  int64_t max_shared_memory_per_block = 49152;  ///< bytes
  int64_t registers_per_block = 65536;          ///< number of 32-bit registers
  int64_t l2_cache_size_bytes = 0;              ///< bytes of the device; 0: unknown
};

struct Target : CpuPart, GpuPart {
  TargetKind kind = TargetKind::kCpu;
  std::shared_ptr<const Target> launcher;  ///< the host; null: none is named
  std::vector<std::string> named_keys;     ///< keys(), if the target text has other keys than its kind

  /// This machine, as far as this process may use it.
  static Target host();
  static Target interpreter();
  /// "native", "interpreter", "llvm -mtriple=PLATFORM -mcpu=NAME -mattr=+F,-F -num-cores=N -vector-width=BITS
  /// -l1-bytes=N ...", "cuda -arch=sm_80 ...", a tag, or the same as a JSON object. Codes of errors: target/kind,
  /// target/option, target/cpu, target/feature, target/value, target/json, target/tag.
  static Result<Target> parse(std::string_view text);

  /// The shortest text that parse() turns back into this target on this machine. The identity of a target in records.
  std::string str() const;
  /// The target as a JSON object.
  std::string json() const;

  std::string_view kind_name() const;
  bool is_in(TargetSet set) const;
  /// Returns the families of the target, the nearest first: "cuda", "gpu". Families of "-keys=" and "-device=" come
  /// before those of its kind.
  std::vector<std::string> keys() const;
  /// The processor that runs the code around kernels: the one that is named, else this machine.
  Target host_target() const;
  /// Returns the error target/no-code if Tilewright cannot generate code for this kind.
  Status check_has_code() const;
  bool has(std::string_view feature) const;
  /// Whether the processor is one of 64-bit Arm; else it is one of x86-64.
  bool is_arm() const;
  /// The part of the name of a platform that LLVM and other compilers know: "x86_64-linux-gnu", "aarch64-linux-gnu".
  std::string_view triple() const;
  /// Whether this process can run code for this kind of processor.
  bool runs_here() const;
  std::vector<std::string> feature_names() const;
  /// All known features of its kind of processor, for LLVM: "+avx2,-avx512f,...". With `cpu` it says what may be used.
  std::string llvm_features() const;
  Target with_num_cores(int cores) const;
  /// A copy of the target that is launched from `launching`, which must be a processor (target/host).
  Result<Target> with_host(const Target& launching) const;
  Hash128 hash() const;
  friend bool operator==(const Target& a, const Target& b);
};

/// Lanes of one vector register for elements of `bits` bits.
inline int64_t vector_lanes(const Target& target, int bits) { return std::max(1, target.vector_bits / bits); }

/// Names that "-mcpu=" takes.
std::vector<std::string> known_cpus();
/// Names of whole targets.
std::vector<std::string> known_target_tags();
/// "llvm", "c", ...
std::vector<std::string> known_target_kinds();

}  // namespace tilewright
