#include "search/measure/arguments.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>

#include "search/measure/control_block.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

size_t page_size() {
  static const auto size = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

/// Returns the memory that Linux can provide without swapping (/proc/meminfo); a huge number if it is not reported.
size_t available_memory() {
  std::ifstream stream("/proc/meminfo");
  for (std::string key, rest; stream >> key && std::getline(stream, rest);) {
    if (key == "MemAvailable:") return std::stoull(rest) << 10;
  }
  return SIZE_MAX;
}

}  // namespace

int64_t ArgumentSpec::elements() const {
  int64_t product = 1;
  for (int64_t extent : shape) product *= extent;
  return product;
}

std::vector<Placement> place_arguments(std::span<const ArgumentSpec> specs, size_t& total) {
  std::vector<Placement> places;
  total = page_size();
  for (const ArgumentSpec& spec : specs) {
    Placement place;
    place.offset = total;
    place.pages = std::max(round_up(spec.bytes(), page_size()), page_size());
    const auto alignment = static_cast<size_t>(std::max(spec.alignment, spec.dtype.bytes()));
    place.lead = (place.pages - spec.bytes()) / alignment * alignment;
    total += place.pages;
    places.push_back(place);
  }
  return places;
}

Result<std::shared_ptr<Arguments>> Arguments::create(std::vector<ArgumentSpec> specs, std::vector<int64_t> scalars) {
  for (const ArgumentSpec& spec : specs) {
    if (spec.dtype.bytes() == 0 || !spec.dtype.is_scalar())
      return argument_error("measure/argument",
                            fmt::format("{} cannot be measured with type {}", spec.name, spec.dtype.str()));
    const bool fits = all_of(spec.shape, [](int64_t extent) { return extent >= 0; });
    if (!fits)
      return argument_error("measure/argument", fmt::format("{} has a negative extent", spec.name),
                            "give the sizes that usual calls have: sizes={...}");
  }
  std::shared_ptr<Arguments> self(new Arguments());
  const std::vector<Placement> places = place_arguments(specs, self->total_);
  const auto failed = [&](const char* what) {
    return resource_error("measure/memory",
                          fmt::format("{} of {} MiB for the kernel's arguments failed ({})", what, self->total_ >> 20,
                                      std::strerror(errno)),
                          errno == EFBIG ? "check the limit on the size of files (ulimit -f)"
                          : errno == EMFILE
                              ? "check the limit on open files (ulimit -n)"
                              : "measure smaller shapes, free some memory, or check its limit (ulimit -v)");
  };
  // The helper keeps a second copy. Without this check, the kernel's OOM killer would end some process instead.
  if (self->total_ > available_memory() / 2) {
    errno = ENOMEM;
    return failed("allocation");
  }
  self->fd_ = ::memfd_create("tilewright-arguments", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (self->fd_ < 0) return failed("sharing");
  // Allocate the pages now, so that a lack of memory is an error here instead of a SIGBUS at the first access.
  if (int error = ::posix_fallocate(self->fd_, 0, static_cast<off_t>(self->total_))) {
    errno = error;
    return failed("allocation");
  }
  // Prevent any process from shrinking the file.
  if (::fcntl(self->fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return failed("sealing");
  void* memory = ::mmap(nullptr, self->total_, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd_, 0);
  if (memory == MAP_FAILED) return failed("mapping");
  self->memory_ = static_cast<std::byte*>(memory);
  self->specs_ = std::move(specs);
  self->scalars_ = std::move(scalars);
  self->slots_.resize(self->specs_.size());
  for (size_t i : indices_of(places)) self->slots_[i].place = places[i];
  return self;
}

Arguments::~Arguments() {
  if (memory_) ::munmap(memory_, total_);
  if (fd_ >= 0) ::close(fd_);
}

ControlBlock& Arguments::control() { return *reinterpret_cast<ControlBlock*>(memory_); }

std::span<std::byte> Arguments::pages(size_t index) const {
  const Placement& place = slots_[index].place;
  return {memory_ + place.offset, place.pages};
}

std::span<std::byte> Arguments::data(size_t index) const {
  return pages(index).subspan(slots_[index].place.lead, specs_[index].bytes());
}

Status Arguments::check_size(size_t index, std::span<const std::byte> values, bool role_fits, const char* what) const {
  if (index >= specs_.size()) return argument_error("measure/argument", fmt::format("there is no argument {}", index));
  const ArgumentSpec& spec = specs_[index];
  if (!role_fits) return argument_error("measure/argument", fmt::format("{} takes no {} values", spec.name, what));
  if (values.size() != spec.bytes()) {
    return argument_error("measure/argument", fmt::format("{}: {} bytes of {} values, but it holds {}", spec.name,
                                                          values.size(), what, spec.bytes()));
  }
  return Ok{};
}

Status Arguments::set_initial(size_t index, std::span<const std::byte> values) {
  const bool fits = index < specs_.size() && specs_[index].role != ArgumentRole::kOutput;
  TW_RETURN_IF_ERROR(check_size(index, values, fits || index >= specs_.size(), "initial"));
  Slot& slot = slots_[index];
  if (specs_[index].role == ArgumentRole::kInOut) {
    slot.before.assign(values.begin(), values.end());
  } else {
    std::ranges::copy(values, data(index).begin());
  }
  slot.is_set = true;
  return Ok{};
}

Status Arguments::set_expected(size_t index, std::span<const std::byte> values, const Tolerance& tolerance) {
  const bool fits = index < specs_.size() && specs_[index].role != ArgumentRole::kInput;
  TW_RETURN_IF_ERROR(check_size(index, values, fits || index >= specs_.size(), "expected"));
  slots_[index].tolerance = tolerance;
  expect(index, values);
  return Ok{};
}

Status Arguments::set_tolerance(size_t index, const Tolerance& tolerance) {
  const bool fits = index < specs_.size() && specs_[index].role != ArgumentRole::kInput;
  // Until the reference has run, zeros are expected: only elements that are never written can be detected.
  const std::vector<std::byte> zeros(index < specs_.size() ? specs_[index].bytes() : 0);
  TW_RETURN_IF_ERROR(check_size(index, zeros, fits || index >= specs_.size(), "expected"));
  slots_[index].tolerance = tolerance;
  expect(index, zeros);
  slots_[index].expected.reset();
  slots_[index].waits = true;
  return Ok{};
}

void Arguments::expect(size_t index, std::span<const std::byte> values) {
  Slot& slot = slots_[index];
  slot.expected.emplace(values.begin(), values.end());
  slot.waits = false;
  if (specs_[index].role == ArgumentRole::kOutput) {
    slot.before.resize(values.size());
    fill_with_wrong_values(specs_[index].dtype, values, slot.before);
  }
  slot.allowance = allowance_for(specs_[index].dtype, values, slot.tolerance);
}

bool Arguments::expects_reference() const {
  return any_of(slots_, [](const Slot& slot) { return slot.waits; });
}

Status Arguments::adopt_outputs() {
  for (size_t i : indices_of(specs_)) {
    if (specs_[i].role == ArgumentRole::kInput) continue;
    const std::string margin = margin_message(i);
    if (!margin.empty()) return script_error("measure/reference", margin);
  }
  for (size_t i : indices_of(specs_)) {
    if (slots_[i].waits) expect(i, data(i));
  }
  return Ok{};
}

Status Arguments::check_complete() const {
  for (size_t i : indices_of(specs_)) {
    const ArgumentRole role = specs_[i].role;
    if (role != ArgumentRole::kOutput && !slots_[i].is_set)
      return argument_error("measure/argument", fmt::format("{} has no initial values", specs_[i].name));
    // Without expected values, a wrong kernel could be stored as the best one.
    if (role != ArgumentRole::kInput && !slots_[i].expected && !slots_[i].waits)
      return argument_error("measure/argument", fmt::format("{} has no expected values", specs_[i].name));
  }
  return Ok{};
}

void Arguments::prepare_outputs() {
  for (size_t i : indices_of(specs_)) {
    if (specs_[i].role == ArgumentRole::kInput) continue;
    const auto whole = pages(i), values = data(i);
    std::fill(whole.data(), values.data(), kMarginPattern);
    std::fill(values.data() + values.size(), whole.data() + whole.size(), kMarginPattern);
    std::ranges::copy(slots_[i].before, values.begin());
  }
}

std::string Arguments::margin_message(size_t index) const {
  const auto whole = pages(index), values = data(index);
  const auto changed = [](std::byte b) { return b != kMarginPattern; };
  const auto front_end = whole.begin() + (values.data() - whole.data());
  const auto back_begin = front_end + static_cast<std::ptrdiff_t>(values.size());
  const std::string& name = specs_[index].name;
  if (const auto found = std::find_if(back_begin, whole.end(), changed); found != whole.end())
    return fmt::format("it wrote behind the end of {}, at byte {} from there", name, found - back_begin);
  if (const auto found = std::find_if(whole.begin(), front_end, changed); found != front_end)
    return fmt::format("it wrote before the start of {}, at byte {} from there", name, found - front_end);
  return "";
}

CheckReport Arguments::check_outputs(const std::atomic<bool>* cancel) const {
  CheckReport all;
  for (size_t i : indices_of(specs_)) {
    if (specs_[i].role == ArgumentRole::kInput) continue;
    CheckReport one = check_result(specs_[i].name, specs_[i].dtype, specs_[i].shape, *slots_[i].expected, data(i),
                                   slots_[i].allowance, cancel);
    const std::string margin = margin_message(i);
    if (!margin.empty()) {
      ++one.wrong;
      one.message = one.message.empty() ? margin : one.message + "; " + margin;
    }
    all.total += one.total;
    if (all.wrong == 0) {
      all.first_wrong = one.first_wrong;
      all.message = one.message;
    }
    all.wrong += one.wrong;
    all.largest = std::max(all.largest, one.largest);
    all.canceled = all.canceled || one.canceled;
  }
  return all;
}

}  // namespace tilewright::search
