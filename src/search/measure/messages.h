// Messages between the pipeline and its helpers. A helper starts with Hello, takes HelperSetup, answers Ready, then
// serves requests one at a time until its connection is closed.
//
//   building     Build -> Built
//   measuring    Measure -> Checked (the first call is done) -> Proceed -> Measured (so is the last)
//                Turns -> Timed
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "search/measure/arguments.h"
#include "search/measure/frame.h"
#include "search/measure/incumbent_times.h"
#include "search/measure/outcome.h"
#include "search/measure/race.h"

namespace tilewright::search {

inline constexpr uint32_t kProtocolVersion = 4;

enum class MessageKind : uint32_t {
  kHello = 1,
  kSetup,
  kReady,
  kBuild,
  kBuilt,
  kMeasure,
  kChecked,
  kProceed,
  kMeasured,
  kTurns,
  kTimed,
};

struct Hello {
  static constexpr auto kKind = MessageKind::kHello;
  uint32_t version = kProtocolVersion;
  std::string mode;

  template <class A>
  void fields(A& a) {
    a(version, mode);
  }
};

struct HelperSetup {
  static constexpr auto kKind = MessageKind::kSetup;
  std::vector<int32_t> cpus;  ///< processors of the helper; empty: all
  uint64_t memory_limit = 0;  ///< bytes beyond what the process needs itself; 0: unlimited
  int32_t threads = 1;        ///< threads of the kernel
  std::vector<ArgumentSpec> arguments;
  std::vector<int64_t> scalars;
  std::string driver_cache;  ///< folder in which drivers of devices keep what they compile; empty: no device is used

  template <class A>
  void fields(A& a) {
    a(cpus, memory_limit, threads, driver_cache);
    uint64_t count = arguments.size();
    a(count);
    // A count that the bytes do not bear out ends at the first argument that is missing.
    for (uint64_t i = 0; i < count && i < kMaxArguments; ++i) {
      if (i == arguments.size()) arguments.emplace_back();
      arguments[i].fields(a);
    }
    a(scalars);
  }
  static constexpr uint64_t kMaxArguments = 4096;
};

struct Ready {
  static constexpr auto kKind = MessageKind::kReady;

  template <class A>
  void fields(A&) {}
};

struct BuildRequest {
  static constexpr auto kKind = MessageKind::kBuild;
  uint64_t id = 0;
  std::string module, options;

  template <class A>
  void fields(A& a) {
    a(id, module, options);
  }
};

struct BuildReply {
  static constexpr auto kKind = MessageKind::kBuilt;
  uint64_t id = 0;
  Outcome outcome = Outcome::kOk;
  std::string object;
  std::string code, message, hint;  ///< fields of the failure
  double seconds = 0;

  template <class A>
  void fields(A& a) {
    a(id, outcome, object, code, message, hint, seconds);
  }
};

struct MeasureRequest {
  static constexpr auto kKind = MessageKind::kMeasure;
  uint64_t id = 0;
  std::string object, entry;
  bool cold = false;
  std::string incumbent;  ///< object whose calls are interleaved with this one's, with the same entry; empty: none

  template <class A>
  void fields(A& a) {
    a(id, object, entry, cold, incumbent);
  }
};

/// The object is loaded and was called once, on the memory that the parent sees.
struct CheckedReply {
  static constexpr auto kKind = MessageKind::kChecked;
  uint64_t id = 0;
  Outcome outcome = Outcome::kOk;
  std::string code, message;
  bool ends = false;  ///< the process is of no use any more: the context of its device may be broken
  Slice first;

  template <class A>
  void fields(A& a) {
    a(id, outcome, code, message, ends, first.calls, first.wall, first.cpu, first.involuntary_switches);
  }
};

/// The result is right; now the time is taken. For a wrong one the parent sends `go` false, and there is no reply.
struct Proceed {
  static constexpr auto kKind = MessageKind::kProceed;
  uint64_t id = 0;
  bool go = false;
  RaceRules rules;
  FastestBeside fastest;  ///< of those that were measured beside the incumbent of the request
  double best_probe = 0;

  template <class A>
  void fields(A& a) {
    a(id, go, best_probe);
    rules.fields(a);
    fastest.fields(a);
  }
};

struct MeasureReply {
  static constexpr auto kKind = MessageKind::kMeasured;
  uint64_t id = 0;
  Outcome outcome = Outcome::kOk;  ///< kOk, kSlowStopped, or kRunError when a later call failed
  std::string message;
  bool ends = false;  ///< see CheckedReply
  std::vector<double> seconds;
  bool contender = false, noisy = false;
  bool has_last_outputs = false;  ///< the shared memory holds what the last of the timed calls has written
  int32_t rejected = 0;
  double best_probe = 0;
  double incumbent_seconds = 0;  ///< per call of the incumbent, beside those of the candidate; 0: not timed

  template <class A>
  void fields(A& a) {
    a(id, outcome, message, ends, seconds, contender, noisy, has_last_outputs, rejected, best_probe, incumbent_seconds);
  }
};

/// Times several kernels in interleaved rounds: A B C A B C ...
struct TurnsRequest {
  static constexpr auto kKind = MessageKind::kTurns;
  uint64_t id = 0;
  std::vector<std::string> objects, entries;
  /// number of baselines, which come last: they take part in as many rounds as their time allows
  int32_t baselines = 0;
  int32_t rounds = 0;
  double slice_seconds = 1e-3;
  double budget_seconds = 5;
  bool cold = false;

  template <class A>
  void fields(A& a) {
    a(id, objects, entries, baselines, rounds, slice_seconds, budget_seconds, cold);
  }
};

struct TurnsReply {
  static constexpr auto kKind = MessageKind::kTimed;
  uint64_t id = 0;
  std::string message;  ///< empty unless a kernel failed
  /// Round by round, seconds per call of each kernel: seconds[round * kernels + kernel]; and which of them other work
  /// of the machine disturbed. Of those, with one thread, the seconds of the processor. A negative number: the kernel
  /// took no part in the round.
  std::vector<double> seconds;
  std::vector<uint8_t> disturbed;

  template <class A>
  void fields(A& a) {
    a(id, message, seconds, disturbed);
  }
};

}  // namespace tilewright::search
