#include "search/measure/mapped_arguments.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "codegen/signature.h"
#include "search/measure/control_block.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
/// Size from which NumPy requests huge pages.
constexpr size_t kHugePagesFrom = size_t{4} << 20;
/// Guards are as large as the argument, so that an index that is off by one in the outermost dimension still meets one.
constexpr size_t kMinGuard = size_t{64} << 10, kMaxGuard = size_t{1} << 30;

bool is_huge(const ArgumentSpec& spec) { return spec.bytes() >= kHugePagesFrom; }

}  // namespace

std::byte* MappedArguments::reserve(size_t bytes, size_t alignment, size_t argument) {
  const size_t guard = std::clamp(round_up(bytes, kMinGuard), kMinGuard, kMaxGuard);
  const size_t size = guard + alignment + bytes + guard;
  void* base = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  mappings_.emplace_back(base, size);
  auto* const begin = static_cast<std::byte*>(base);
  auto* const data = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<size_t>(begin + guard), alignment));
  regions_.push_back({begin, begin + size, data, static_cast<int32_t>(argument)});
  return data;
}

void MappedArguments::add(Set& set, std::byte* data, size_t argument) {
  DLTensor tensor{};
  tensor.data = data;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = static_cast<int32_t>(specs_[argument].shape.size());
  tensor.dtype = codegen::dlpack_type(specs_[argument].dtype);
  tensor.shape = specs_[argument].shape.data();
  set.tensors.push_back(tensor);
}

std::unique_ptr<MappedArguments> MappedArguments::map(int shared_fd, std::vector<ArgumentSpec> specs,
                                                      const std::vector<int64_t>& scalars) {
  std::unique_ptr<MappedArguments> self(new MappedArguments());
  self->specs_ = std::move(specs);
  self->regions_.reserve(2 * self->specs_.size());  // the handler of fatal signals reads them at any time
  for (int64_t bits : scalars) {
    tw_scalar scalar;
    scalar.i = bits;
    self->scalars_.push_back(scalar);
  }
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* control = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, shared_fd, 0);
  if (control == MAP_FAILED) return nullptr;
  self->mappings_.emplace_back(control, page);
  self->control_ = static_cast<ControlBlock*>(control);

  size_t total = 0;
  const std::vector<Placement> places = place_arguments(self->specs_, total);
  for (size_t i : indices_of(places)) {
    const bool written = self->specs_[i].role != ArgumentRole::kInput;
    self->has_in_out_ = self->has_in_out_ || self->specs_[i].role == ArgumentRole::kInOut;
    std::byte* const pages = self->reserve(places[i].pages, page, i);
    if (!pages) return nullptr;
    const int protection = written ? PROT_READ | PROT_WRITE : PROT_READ;
    if (::mmap(pages, places[i].pages, protection, MAP_SHARED | MAP_FIXED | MAP_POPULATE, shared_fd,
               static_cast<off_t>(places[i].offset)) == MAP_FAILED)
      return nullptr;
    self->regions_.back().data = pages + places[i].lead;
    self->add(self->shared_, pages + places[i].lead, i);
  }
  // The address space for the own set is taken now, before a limit on it is set.
  for (size_t i : indices_of(places)) {
    std::byte* const data = self->reserve(places[i].pages, is_huge(self->specs_[i]) ? kHugePage : page, i);
    if (!data) return nullptr;
    self->add(self->own_, data, i);
  }
  for (Set* set : {&self->shared_, &self->own_}) {
    for (const DLTensor& tensor : set->tensors) set->pointers.push_back(&tensor);
  }
  return self;
}

bool MappedArguments::prepare_own() {
  if (own_ready_) return true;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  for (size_t i : indices_of(specs_)) {
    const size_t bytes = specs_[i].bytes(), pages = std::max(round_up(bytes, page), page);
    void* const data = own_.tensors[i].data;
    if (::mprotect(data, pages, PROT_READ | PROT_WRITE) != 0) return false;
    if (is_huge(specs_[i])) ::madvise(data, pages, MADV_HUGEPAGE);  // advice: a system without them is fine, too
    std::memcpy(data, shared_.tensors[i].data, bytes);
  }
  own_ready_ = true;
  return true;
}

void MappedArguments::save_in_out() {
  saved_.resize(specs_.size());
  for (size_t i : indices_of(specs_)) {
    if (specs_[i].role != ArgumentRole::kInOut) continue;
    const auto* data = static_cast<const std::byte*>(shared_.tensors[i].data);
    saved_[i].assign(data, data + specs_[i].bytes());
  }
}

void MappedArguments::restore_in_out() {
  for (size_t i : indices_of(saved_))
    std::copy(saved_[i].begin(), saved_[i].end(), static_cast<std::byte*>(own_.tensors[i].data));
}

bool MappedArguments::show_own_outputs() {
  if (has_in_out_ || !own_ready_) return false;
  for (size_t i : indices_of(specs_)) {
    if (specs_[i].role != ArgumentRole::kInput)
      std::memcpy(shared_.tensors[i].data, own_.tensors[i].data, specs_[i].bytes());
  }
  return true;
}

MappedArguments::~MappedArguments() {
  for (const auto& [address, size] : mappings_) ::munmap(address, size);
}

}  // namespace tilewright::search
