#include "search/measure/device_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "codegen/signature.h"
#include "runtime/runtime.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

/// Red zones are as large as the argument, so that an index that is off by one in the outermost dimension still meets
/// one.
constexpr size_t kMinZone = size_t{4} << 10, kMaxZone = size_t{1} << 20;
/// A NaN in every floating-point format, so that what is read from there shows in the results.
constexpr std::byte kZoneByte{0xff};

std::byte* data_of(const DLTensor& tensor) { return static_cast<std::byte*>(tensor.data) + tensor.byte_offset; }

}  // namespace

DeviceArguments::DeviceArguments(DLDevice device, const std::vector<ArgumentSpec>& specs, const DLTensor* const* shared)
    : device_(device), specs_(specs), shared_(shared), slots_(specs.size()) {
  tw_ctx_init(&context_);
  context_.user = this;
  context_.set_error = [](tw_ctx* context, int32_t, const char* message) {
    static_cast<DeviceArguments*>(context->user)->problem_ = message ? message : "";
  };
}

std::unique_ptr<DeviceArguments> DeviceArguments::create(DLDeviceType type, const std::vector<ArgumentSpec>& specs,
                                                         const DLTensor* const* shared, std::string& problem) {
  const DLDevice device{type, type == kDLOpenCL ? std::max(tw_opencl_default(), 0) : 0};
  std::unique_ptr<DeviceArguments> self(new DeviceArguments(device, specs, shared));
  if (self->allocate()) return self;
  problem = self->problem_;
  return nullptr;
}

bool DeviceArguments::allocate() {
  for (size_t i : indices_of(specs_)) {
    const size_t bytes = specs_[i].bytes();
    slots_[i].zone = std::clamp(round_up(bytes, kMinZone), kMinZone, kMaxZone);
    slots_[i].memory = tw_device_allocate(&context_, device_, static_cast<int64_t>(bytes + 2 * slots_[i].zone));
    if (!slots_[i].memory) return false;
    DLTensor tensor = *shared_[i];
    tensor.data = slots_[i].memory;
    tensor.device = device_;
    tensor.byte_offset = slots_[i].zone;
    tensors_.push_back(tensor);
  }
  for (const DLTensor& tensor : tensors_) pointers_.push_back(&tensor);
  return true;
}

DeviceArguments::~DeviceArguments() {
  for (const Slot& slot : slots_) {
    if (slot.memory) tw_device_free(device_, slot.memory);
  }
}

bool DeviceArguments::has_in_out() const {
  return any_of(specs_, [](const ArgumentSpec& spec) { return spec.role == ArgumentRole::kInOut; });
}

bool DeviceArguments::upload() {
  for (size_t i : indices_of(specs_)) {
    Slot& slot = slots_[i];
    const size_t bytes = specs_[i].bytes();
    slot.initial.assign(bytes + 2 * slot.zone, kZoneByte);
    if (bytes > 0) std::memcpy(slot.initial.data() + slot.zone, data_of(*shared_[i]), bytes);
    if (tw_device_upload(&context_, device_, {slot.memory, 0}, slot.initial.data(),
                         static_cast<int64_t>(slot.initial.size())) != TW_OK)
      return false;
  }
  return true;
}

bool DeviceArguments::restore_in_out() {
  for (size_t i : indices_of(specs_)) {
    const Slot& slot = slots_[i];
    if (specs_[i].role != ArgumentRole::kInOut) continue;
    if (tw_device_upload(&context_, device_, {slot.memory, static_cast<int64_t>(slot.zone)},
                         slot.initial.data() + slot.zone, static_cast<int64_t>(specs_[i].bytes())) != TW_OK)
      return false;
  }
  return true;
}

bool DeviceArguments::show_outputs() {
  for (size_t i : indices_of(specs_)) {
    if (!look_at(i)) return false;
  }
  return true;
}

/// Compares what surrounds an argument, and all of an input, with what was there before.
bool DeviceArguments::look_at(size_t index) {
  const Slot& slot = slots_[index];
  const ArgumentSpec& spec = specs_[index];
  std::vector<std::byte> found(slot.initial.size());
  if (tw_device_download(&context_, device_, found.data(), {slot.memory, 0}, static_cast<int64_t>(found.size())) !=
      TW_OK)
    return false;
  const bool is_input = spec.role == ArgumentRole::kInput;
  const auto begin = static_cast<ptrdiff_t>(slot.zone), end = begin + static_cast<ptrdiff_t>(spec.bytes());
  const auto differs = [&](ptrdiff_t from, ptrdiff_t to) {
    const auto at = std::mismatch(found.begin() + from, found.begin() + to, slot.initial.begin() + from).first;
    return at == found.begin() + to ? ptrdiff_t{-1} : at - found.begin();
  };
  if (const ptrdiff_t at = differs(0, begin); at >= 0) {
    problem_ = fmt::format("it wrote before the start of {}, at byte {} from there", spec.name, at - begin);
  } else if (const ptrdiff_t behind = differs(end, static_cast<ptrdiff_t>(found.size())); behind >= 0) {
    problem_ = fmt::format("it wrote behind the end of {}, at byte {} from there", spec.name, behind - end);
  } else if (is_input && differs(begin, end) >= 0) {
    problem_ = fmt::format("it wrote to {}, which is an input", spec.name);
  } else {
    if (!is_input && spec.bytes() > 0) std::memcpy(data_of(*shared_[index]), found.data() + begin, spec.bytes());
    return true;
  }
  return false;
}

}  // namespace tilewright::search
