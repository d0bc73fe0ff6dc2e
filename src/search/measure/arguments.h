// Arguments that candidates of one workload are called with, and their expected results.
//
//   TW_TRY(arguments, Arguments::create({{"A", f32, {512, 512}}, {"C", f32, {512, 512}, ArgumentRole::kOutput}}));
//   arguments->set_initial(0, bytes_of_a);
//   arguments->set_expected(1, bytes_of_c, tolerance_for(f32, f32, 512));     // or set_tolerance(), see there
//
// The data are in shared memory of this process, so they survive a crash of the measuring helper. The helper maps
// inputs read-only, and guard pages before and after each argument. The data end as close to the following guard page
// as their alignment allows. The margins between data and guard pages hold a pattern, and out-of-bounds stores change
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/dtype.h"
#include "search/measure/result_check.h"
#include "support/result.h"

namespace tilewright::search {

/// The smallest multiple that is at least `value`.
inline size_t round_up(size_t value, size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

enum class ArgumentRole : uint8_t {
  kInput,   ///< only read
  kOutput,  ///< all elements are written before they are read
  kInOut,   ///< read before it is written; reset to the same contents before every call
};

struct ArgumentSpec {
  std::string name;
  DataType dtype;
  std::vector<int64_t> shape;
  ArgumentRole role = ArgumentRole::kInput;
  int32_t alignment = 64;  ///< bytes

  int64_t elements() const;
  size_t bytes() const { return static_cast<size_t>(elements()) * static_cast<size_t>(dtype.bytes()); }

  template <class A>
  void fields(A& a) {
    a(name, dtype.code, dtype.bits, dtype.lanes, dtype.scalable, shape, role, alignment);
  }
};

/// The layout of one argument in the shared memory: whole pages that hold [leading margin | data | trailing margin].
struct Placement {
  size_t offset = 0;  ///< offset of the pages
  size_t pages = 0;   ///< bytes, a multiple of the page size
  size_t lead = 0;    ///< bytes of the leading margin
};
/// Computes the layouts, equally in both processes. The first page is the ControlBlock. `total`: receives the total
/// size.
std::vector<Placement> place_arguments(std::span<const ArgumentSpec> specs, size_t& total);

inline constexpr std::byte kMarginPattern{0xc5};

struct ControlBlock;

class Arguments {
 public:
  /// Scalars are the raw bits of tw_scalar, in the order of the kernel's scalar parameters.
  static Result<std::shared_ptr<Arguments>> create(std::vector<ArgumentSpec> specs, std::vector<int64_t> scalars = {});
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  /// Sets the contents before each call, of an input or in-out argument.
  Status set_initial(size_t index, std::span<const std::byte> values);
  /// Sets the expected contents after a call, of an output or in-out argument.
  Status set_expected(size_t index, std::span<const std::byte> values, const Tolerance& tolerance);
  /// Takes the expected contents from the reference, a candidate that runs before all others (pipeline.h).
  Status set_tolerance(size_t index, const Tolerance& tolerance);
  /// Adds `absolute` to the tolerance of an argument, for programs that amplify rounding errors. The expected contents
  /// must be known.
  void loosen(size_t index, double absolute) { slots_[index].allowance.absolute += absolute; }
  /// Returns an error if an input is not set, or the expected contents of an output are neither set nor computed by a
  /// reference.
  Status check_complete() const;

  const std::vector<ArgumentSpec>& specs() const { return specs_; }
  const std::vector<int64_t>& scalars() const { return scalars_; }
  const Tolerance& tolerance(size_t index) const { return slots_[index].tolerance; }

  // Functions for the pipeline.

  int shared_fd() const { return fd_; }
  ControlBlock& control();
  /// Fills outputs with wrong values, in-out arguments with their initial contents, and margins with the pattern.
  void prepare_outputs();
  /// Whether the expected contents of some output have yet to be computed by the reference.
  bool expects_reference() const;
  /// Uses the outputs of a reference call as the expected contents. Returns an error if the reference wrote to the
  /// margins of its outputs.
  Status adopt_outputs();
  /// Returns the expected contents of an output or in-out argument after a call; null until they are known.
  const std::vector<std::byte>* expected(size_t index) const {
    return slots_[index].expected ? &*slots_[index].expected : nullptr;
  }
  /// Checks the outputs of a call. The message is that of the first wrong output.
  CheckReport check_outputs(const std::atomic<bool>* cancel = nullptr) const;

 private:
  struct Slot {
    Placement place;
    std::vector<std::byte> before;  // contents before a call: initial values of in-outs, wrong values of outputs
    std::optional<std::vector<std::byte>> expected;
    bool waits = false;   // whether the reference has yet to compute `expected`
    bool is_set = false;  // whether the initial contents are set; those of inputs are in the shared memory
    Tolerance tolerance;
    Allowance allowance;
  };
  Arguments() = default;
  Status check_size(size_t index, std::span<const std::byte> values, bool role_fits, const char* what) const;
  std::span<std::byte> pages(size_t index) const;
  std::span<std::byte> data(size_t index) const;
  std::string margin_message(size_t index) const;
  void expect(size_t index, std::span<const std::byte> values);

  std::vector<ArgumentSpec> specs_;
  std::vector<int64_t> scalars_;
  std::vector<Slot> slots_;
  int fd_ = -1;
  std::byte* memory_ = nullptr;
  size_t total_ = 0;
};

}  // namespace tilewright::search
