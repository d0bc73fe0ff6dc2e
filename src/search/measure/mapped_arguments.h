// The helper's view of the arguments: each between guard pages, inputs read-only.
//
// There are two sets. `shared` is the memory that the parent prepared and compares after the first call. `own` is
// private memory for timing, of the kind that arrays of users have (huge pages where NumPy asks for them), so that what
// is measured is what will be seen later; it is filled when first used.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "runtime/abi.h"
#include "search/measure/arguments.h"

namespace tilewright::search {

class MappedArguments {
 public:
  /// Returns null if the memory cannot be mapped; see errno.
  static std::unique_ptr<MappedArguments> map(int shared_fd, std::vector<ArgumentSpec> specs,
                                              const std::vector<int64_t>& scalars);
  ~MappedArguments();
  MappedArguments(const MappedArguments&) = delete;
  MappedArguments& operator=(const MappedArguments&) = delete;

  ControlBlock& control() { return *control_; }
  const tw_scalar* scalars() const { return scalars_.data(); }

  const DLTensor* const* shared() const { return shared_.pointers.data(); }

  /// Returns false if there is no memory for it.
  bool prepare_own();
  const DLTensor* const* own() const { return own_.pointers.data(); }
  /// Remembers the contents of in-out arguments, which the parent has just prepared in the shared memory.
  void save_in_out();
  /// Puts them back into the own set, so that repeated calls start from the same values.
  void restore_in_out();
  /// Copies the outputs of the own set to the shared one, for the parent to compare. False with in-out arguments, which
  /// change from call to call.
  bool show_own_outputs();

  /// The memory of each argument with its guards, for the handler of fatal signals.
  struct Region {
    const std::byte *begin, *end;  ///< the guards included
    const std::byte* data;
    int32_t argument;
  };
  std::span<const Region> regions() const { return regions_; }

 private:
  struct Set {
    std::vector<DLTensor> tensors;
    std::vector<const DLTensor*> pointers;
  };
  MappedArguments() = default;
  std::byte* reserve(size_t bytes, size_t alignment, size_t argument);
  void add(Set& set, std::byte* data, size_t argument);

  std::vector<ArgumentSpec> specs_;
  std::vector<tw_scalar> scalars_;
  std::vector<Region> regions_;
  std::vector<std::pair<void*, size_t>> mappings_;
  std::vector<std::vector<std::byte>> saved_;
  Set shared_, own_;
  ControlBlock* control_ = nullptr;
  bool has_in_out_ = false, own_ready_ = false;
};

}  // namespace tilewright::search
