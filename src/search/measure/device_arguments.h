// The helper's arguments in the memory of a device: each between red zones, whose bytes are compared after calls.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "search/measure/arguments.h"

namespace tilewright::search {

class DeviceArguments {
 public:
  /// Begins with the contents of the `shared` tensors, which the parent prepared. None, with the reason in `problem`,
  /// where there is no device or no memory.
  static std::unique_ptr<DeviceArguments> create(DLDeviceType type, const std::vector<ArgumentSpec>& specs,
                                                 const DLTensor* const* shared, std::string& problem);
  ~DeviceArguments();
  DeviceArguments(const DeviceArguments&) = delete;

  DLDevice device() const { return device_; }
  const DLTensor* const* tensors() const { return pointers_.data(); }

  /// Copies the shared tensors to the device, and fills the red zones. False after a failure; problem() says which.
  bool upload();
  /// Puts in-out arguments back, so that repeated calls start from the same values.
  bool restore_in_out();
  /// Copies outputs to the shared tensors. False, with the reason in problem(), also where a call has written to an
  /// input or a red zone.
  bool show_outputs();
  bool has_in_out() const;
  const std::string& problem() const { return problem_; }

 private:
  struct Slot {
    void* memory = nullptr;
    size_t zone = 0;                 ///< bytes in front of the data, and behind it
    std::vector<std::byte> initial;  ///< zone, data, zone: what a call finds
  };
  DeviceArguments(DLDevice device, const std::vector<ArgumentSpec>& specs, const DLTensor* const* shared);
  bool allocate();
  bool look_at(size_t index);

  DLDevice device_;
  const std::vector<ArgumentSpec>& specs_;
  const DLTensor* const* shared_;
  std::vector<Slot> slots_;
  std::vector<DLTensor> tensors_;
  std::vector<const DLTensor*> pointers_;
  tw_ctx context_;
  std::string problem_;
};

}  // namespace tilewright::search
