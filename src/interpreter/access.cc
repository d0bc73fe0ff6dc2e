// Loads, stores and allocations, with their checks.
#include <algorithm>
#include <cstring>
#include <utility>

#include "interpreter/machine.h"
#include "ir/numeric.h"
#include "support/ranges.h"

namespace tilewright::interpreter {
namespace {

Slot read_element(DataType type, const std::byte* from) {
  if (type.is_float()) {
    if (type.bits == 32) {
      float value;
      std::memcpy(&value, from, 4);
      return {.f = value};
    }
    return {.f = load_float(type, from)};
  }
  if (type.bits == 32 && type.is_int()) {
    int32_t value;
    std::memcpy(&value, from, 4);
    return {.i = value};
  }
  return {.i = load_int(type, from)};
}

void write_element(DataType type, Slot value, std::byte* to) {
  if (type.is_float()) {
    if (type.bits == 32) {
      auto single = static_cast<float>(value.f);
      std::memcpy(to, &single, 4);
    } else {
      store_element(type, value.f, 0, to);
    }
  } else {
    store_element(type, 0, value.i, to);
  }
}

/// The state of a byte that an asynchronous copy will write.
constexpr uint8_t kPendingStore = 2;

bool all_written(const uint8_t* written, int bytes) {
  if (bytes == 4) {
    uint32_t flags;
    std::memcpy(&flags, written, 4);
    return flags == 0x01010101;
  }
  for (int i = 0; i < bytes; ++i) {
    if (written[i] != 1) return false;
  }
  return true;
}

}  // namespace

bool Machine::is_negative_stride_view(const Access& access, const Slot* r) {
  if (access.dimensions.size() != 1 || access.dimensions[0].stride != kNone) return false;
  const Allocation* behind = memory_.find(r[access.data].i);
  return behind && behind->site == -1 && offset_of(r[access.data].i) > 0;
}

/// Computes the element's allocation and byte offset; fails if the element is outside its buffer or the memory.
bool Machine::locate(const Access& access, const Slot* r, int lane, int64_t& byte, Allocation*& allocation) {
  int64_t offset = 0;
  for (const Access::Dimension& d : access.dimensions) {
    int64_t index = r[d.vector ? d.index + lane : d.index].i;
    int64_t extent = r[d.extent].i;
    if ((index < 0 || index >= extent) && !is_negative_stride_view(access, r)) [[unlikely]]
      return fail_bounds(access, r, lane);
    offset = d.stride == kNone ? offset * extent + index : offset + index * r[d.stride].i;
  }
  if (access.offset != kNone) offset += r[access.offset].i;
  int64_t pointer = r[access.data].i;
  allocation = memory_.find(pointer);
  byte = offset_of(pointer) + offset * access.bytes;
  if (!allocation || byte < 0 || byte + access.bytes > allocation->size) [[unlikely]] {
    const std::string& name = program_.sites[access.site].buffer->name;
    return fail("interpret/out-of-bounds",
                where(access.site) + " accesses " + element(access, r, lane) +
                    (allocation ? ", which is outside of the memory behind '" + name + "' (" +
                                      std::to_string(allocation->size) + " bytes)"
                                : ", and there is no memory behind '" + name + "'"),
                access.site);
  }
  return true;
}

template <bool kWrite>
bool Machine::access(const Insn& in, const Access& access, Slot* r) {
  for (int lane = 0; lane < access.lanes; ++lane) {
    int first = (kWrite ? in.b : in.dst) + lane * access.element_lanes;
    if (access.mask != kNone && r[access.mask + lane].i == 0) {
      for (int k = 0; k < access.element_lanes && !kWrite; ++k) r[first + k].i = 0;
      continue;
    }
    int64_t byte = 0;
    Allocation* allocation = nullptr;
    if (!locate(access, r, lane, byte, allocation)) return false;
    std::byte* at = allocation->data + byte;
    int step = access.bytes / access.element_lanes;
    if constexpr (kWrite) {
      if (!allocation->writable) [[unlikely]] {
        return fail(
            "interpret/read-only",
            where(access.site) + " writes " + element(access, r, lane) + ", which is constant or read-only memory",
            access.site);
      }
      if (!current_->levels.empty() && options_.check_races) {
        std::byte value[512];
        const std::byte* compared = access.bytes <= static_cast<int>(sizeof value) ? value : nullptr;
        for (int k = 0; compared && k < access.element_lanes; ++k)
          write_element(access.dtype, r[first + k], value + k * step);
        const bool fits = program_.sites[access.site].is_atomic
                              ? note_update(*allocation, byte, access, r, lane)
                              : note_write(*allocation, byte, access, r, lane, compared);
        if (!fits) return false;
      }
      if (in.extra == 1) {
        PendingStore store{r[access.data].i - offset_of(r[access.data].i) + byte, access.site, {}};
        store.value.resize(static_cast<size_t>(access.bytes));
        for (int k = 0; k < access.element_lanes; ++k) {
          write_element(access.dtype, r[first + k], store.value.data() + k * step);
        }
        current_->open_group.push_back(std::move(store));
        if (allocation->written)
          std::memset(allocation->written.get() + byte, kPendingStore, static_cast<size_t>(access.bytes));
        continue;
      }
      for (int k = 0; k < access.element_lanes; ++k) write_element(access.dtype, r[first + k], at + k * step);
      if (allocation->written) std::memset(allocation->written.get() + byte, 1, static_cast<size_t>(access.bytes));
    } else {
      bool written = !allocation->written || all_written(allocation->written.get() + byte, access.bytes);
      if (!written) [[unlikely]] {
        if (std::memchr(allocation->written.get() + byte, kPendingStore, static_cast<size_t>(access.bytes))) {
          return fail_pending_store(access, r, lane);
        }
        if (!defer_unwritten(*allocation, byte, access, r, lane)) return false;
      }
      const bool is_watched = !current_->levels.empty() && options_.check_races;
      // An atomic operation writes the element that it reads.
      const bool is_atomic = is_watched && program_.sites[access.site].is_atomic;
      if (is_watched && !is_atomic && !note_read(*allocation, byte, access, r, lane)) return false;
      for (int k = 0; k < access.element_lanes; ++k)
        r[first + k] = written ? read_element(access.dtype, at + k * step) : Slot{.i = 0};
    }
  }
  return true;
}

template bool Machine::access<true>(const Insn& in, const Access& access, Slot* r);
template bool Machine::access<false>(const Insn& in, const Access& access, Slot* r);

bool Machine::complete_groups(Thread& thread, size_t running) {
  while (thread.pending_groups.size() > running) {
    for (const PendingStore& store : thread.pending_groups.front()) {
      Allocation* allocation = memory_.find(store.pointer);
      if (!allocation) continue;
      const int64_t byte = offset_of(store.pointer), size = static_cast<int64_t>(store.value.size());
      std::memcpy(allocation->data + byte, store.value.data(), store.value.size());
      if (allocation->written) std::memset(allocation->written.get() + byte, 1, store.value.size());
      // Other threads see the store after the next barrier.
      for (int64_t g = byte / allocation->granule; allocation->shadow && g <= (byte + size - 1) / allocation->granule;
           ++g) {
        allocation->shadow[g].writer = clock_;
        allocation->shadow[g].writer_site = store.site;
      }
    }
    thread.pending_groups.erase(thread.pending_groups.begin());
  }
  return true;
}

/// In team-shared memory, another thread may write the element later, which is a race. Its write reports that; if there
/// is none until the team joins, has_unwritten() reports the read.
bool Machine::defer_unwritten(const Allocation& allocation, int64_t byte, const Access& access, const Slot* r,
                              int lane) {
  fail_unwritten(allocation, byte, access, r, lane);
  bool shared = allocation.site >= 0 && is_shared(*current_, program_.allocations[allocation.site]);
  if (!shared || !options_.check_races) return false;
  if (!unwritten_) unwritten_ = std::move(failure_);
  failure_.reset();
  return true;
}

bool Machine::has_unwritten() {
  if (unwritten_) failure_ = std::exchange(unwritten_, std::nullopt);
  return failure_.has_value();
}

bool Machine::search(const Insn& in, Slot* r) {
  Insn load = in;
  load.dst = in.dst + 1;
  for (int64_t place = r[in.b].i; place < r[in.c].i; ++place) {
    r[in.dst].i = place;
    ++steps_;
    if (!access<false>(load, program_.accesses[in.a], r) || !check_limits(program_.accesses[in.a].site)) return false;
    if (r[load.dst].i == r[in.extra].i) return true;
  }
  r[in.dst].i = -1;
  return true;
}

bool Machine::address(const Insn& in, Slot* r) {
  const Access& access = program_.accesses[in.a];
  int64_t byte = 0;
  Allocation* allocation = nullptr;
  if (!locate(access, r, 0, byte, allocation)) return false;
  int64_t pointer = r[access.data].i;
  r[in.dst].i = pointer - offset_of(pointer) + byte;
  return true;
}

/// What an atomic operation leaves in an element.
static Slot updated(Intrinsic operation, DataType type, Slot before, Slot value) {
  const bool is_less =
      type.is_uint() ? static_cast<uint64_t>(value.i) < static_cast<uint64_t>(before.i) : value.i < before.i;
  Slot after = value;
  switch (operation) {
    case Intrinsic::k_atomic_add:
      if (type.is_float()) {
        after.f = round_result(type, before.f + value.f);
      } else {
        const uint64_t sum = static_cast<uint64_t>(before.i) + static_cast<uint64_t>(value.i);
        after.i = wrap_int(type, static_cast<int64_t>(sum));
      }
      break;
    case Intrinsic::k_atomic_min:
      return is_less ? value : before;
    case Intrinsic::k_atomic_max:
      return is_less ? before : value;
    case Intrinsic::k_atomic_and:
      after.i = before.i & value.i;
      break;
    case Intrinsic::k_atomic_or:
      after.i = before.i | value.i;
      break;
    case Intrinsic::k_atomic_xor:
      after.i = before.i ^ value.i;
      break;
    default:  // an exchange
      break;
  }
  return after;
}

bool Machine::atomic(const Insn& in, Slot* r) {
  const Access& access = program_.accesses[in.a];
  if (!this->access<false>(in, access, r)) return false;
  r[in.dst + 1] = updated(static_cast<Intrinsic>(in.extra), access.dtype, r[in.dst], r[in.b]);
  Insn store = in;
  store.b = in.dst + 1;
  store.extra = 0;
  return this->access<true>(store, access, r);
}

// ---- races -----------------------------------------------------------------------------------------------------

const LoopLevel* Machine::unordered(uint32_t stamp) const {
  const std::vector<LoopLevel*>& levels = current_->levels;
  if (stamp == 0 || stamp >= levels.back()->start) return nullptr;
  for (const LoopLevel* level : levels) {
    if (level->fork->begin > stamp || stamp >= level->start) continue;
    // A thread that has waited for its warp continues in another slice of the same iteration.
    if (!level->in_team || level->fork->index_at(stamp) != level->index) return level;
  }
  return nullptr;
}

bool Machine::are_combined_by_threads(const LoopLevel& level, int site, int other) const {
  const Ref<Block>& block = program_.sites[site].block;
  if (!block.defined() || program_.sites[other].block != block) return false;
  auto* by = find_value(program_.combined_by, block.get());
  return by && by->contains(level.fork->site);
}

bool Machine::are_reduction_steps(const LoopLevel& level, int site, int other) const {
  const Site &step = program_.sites[site], &earlier = program_.sites[other];
  if (step.operation <= 0 || !program_.loops[level.fork->site].is_vector) return false;
  bool starts = earlier.operation == Site::kInit && earlier.block.defined() && earlier.block == step.block;
  return starts || earlier.operation == step.operation;
}

bool Machine::ordered_in_lockstep(const LoopLevel& level, int site, int earlier) const {
  int loop = level.fork->site;
  return options_.lanes_in_step && earlier < site && program_.sites[earlier].lanes == loop &&
         program_.sites[site].lanes == loop;
}

namespace {
std::pair<int64_t, int64_t> granules(Allocation& allocation, int64_t byte, int bytes) {
  if (!allocation.shadow) {
    allocation.shadow.reset(new Shadow[allocation.size / allocation.granule + 1]);
  }
  return {byte / allocation.granule, (byte + bytes - 1) / allocation.granule};
}
}  // namespace

bool Machine::note_read(Allocation& allocation, int64_t byte, const Access& access, const Slot* r, int lane) {
  auto [first, last] = granules(allocation, byte, access.bytes);
  for (int64_t g = first; g <= last; ++g) {
    Shadow& shadow = allocation.shadow[g];
    if (const LoopLevel* level = unordered(shadow.writer)) {
      bool threads = program_.loops[level->fork->site].is_thread;
      bool combined = are_reduction_steps(*level, access.site, shadow.writer_site) ||
                      ordered_in_lockstep(*level, access.site, shadow.writer_site) ||
                      (threads && are_combined_by_threads(*level, access.site, shadow.writer_site));
      if (!combined) {
        return fail_race(*level, shadow.writer, shadow.writer_site, "writes", access, "reads", r, lane);
      }
    }
    if (const LoopLevel* level = unordered(shadow.updater);
        level && !ordered_in_lockstep(*level, access.site, shadow.updater_site)) {
      return fail_race(*level, shadow.updater, shadow.updater_site, "updates", access, "reads", r, lane);
    }
    // Keep an earlier reader that is unordered with this one: it conflicts with every later writer that this one
    // conflicts with (unless lockstep orders it). A step of a reduction stores right after, and its store is recorded.
    const LoopLevel* level = unordered(shadow.reader);
    bool keeps_reader = level && !ordered_in_lockstep(*level, access.site, shadow.reader_site);
    if (program_.sites[access.site].operation <= 0 && !keeps_reader) {
      shadow.reader = clock_;
      shadow.reader_site = access.site;
    }
  }
  return true;
}

bool Machine::note_write(Allocation& allocation, int64_t byte, const Access& access, const Slot* r, int lane,
                         const std::byte* value) {
  auto [first, last] = granules(allocation, byte, access.bytes);
  for (int64_t g = first; g <= last; ++g) {
    Shadow& shadow = allocation.shadow[g];
    for (bool writes : {true, false}) {
      uint32_t stamp = writes ? shadow.writer : shadow.reader;
      const LoopLevel* level = unordered(stamp);
      if (!level) continue;
      int other = writes ? shadow.writer_site : shadow.reader_site;
      bool threads = program_.loops[level->fork->site].is_thread;
      // Threads that all store one value (a statement that does not depend on the thread) agree.
      bool written = !allocation.written || all_written(allocation.written.get() + byte, access.bytes);
      bool agrees =
          written && value && std::memcmp(allocation.data + byte, value, static_cast<size_t>(access.bytes)) == 0;
      bool combined = threads && (agrees || are_combined_by_threads(*level, access.site, other));
      if (!combined && !are_reduction_steps(*level, access.site, other) &&
          !ordered_in_lockstep(*level, access.site, other)) {
        return fail_race(*level, stamp, other, writes ? "writes" : "reads", access, "writes", r, lane);
      }
      if (threads) break;
    }
    if (const LoopLevel* level = unordered(shadow.updater);
        level && !ordered_in_lockstep(*level, access.site, shadow.updater_site)) {
      return fail_race(*level, shadow.updater, shadow.updater_site, "updates", access, "writes", r, lane);
    }
    shadow.writer = clock_;
    shadow.writer_site = access.site;
  }
  return true;
}

/// An atomic operation races with loads and stores, and not with other steps.
bool Machine::note_update(Allocation& allocation, int64_t byte, const Access& access, const Slot* r, int lane) {
  auto [first, last] = granules(allocation, byte, access.bytes);
  for (int64_t g = first; g <= last; ++g) {
    Shadow& shadow = allocation.shadow[g];
    for (bool writes : {true, false}) {
      const uint32_t stamp = writes ? shadow.writer : shadow.reader;
      const int other = writes ? shadow.writer_site : shadow.reader_site;
      const LoopLevel* level = unordered(stamp);
      if (level && !ordered_in_lockstep(*level, access.site, other)) {
        return fail_race(*level, stamp, other, writes ? "writes" : "reads", access, "updates", r, lane);
      }
    }
    // A step that is unordered with this one says more about loads and stores to come.
    if (!unordered(shadow.updater)) {
      shadow.updater = clock_;
      shadow.updater_site = access.site;
    }
  }
  return true;
}

// ---- allocations -----------------------------------------------------------------------------------------------

bool Machine::is_shared(const Thread& thread, const AllocationSite& site) {
  constexpr ThreadAxis kNeighbors{ThreadAxis::Level::kThread, 0};
  return thread.shared && site.scope->rank > 0 && site.scope->is_shared_by(kNeighbors);
}

std::vector<int64_t> Machine::owner_of(const Thread& thread, const MemoryScope& scope) const {
  std::vector<int64_t> owner;
  for (const LoopLevel* level : thread.levels) {
    const auto& axis = program_.loops[level->fork->site].axis;
    if (!axis) continue;
    if (!scope.is_shared_by(*axis)) {
      owner.push_back(level->index);
    } else if (scope.lanes > 1) {
      owner.push_back(level->index / scope.lanes);
    }
  }
  return owner;
}

bool Machine::allocate(Thread& thread, const Insn& in, Slot* r) {
  const AllocationSite& site = program_.allocations[in.b];
  SharedKey key;
  bool shared = is_shared(thread, site);
  if (shared) {
    key = {&in, thread.occurrences[&in]++, owner_of(thread, *site.scope)};
    auto it = thread.shared->find(key);
    if (it != thread.shared->end()) {
      r[in.dst].i = it->second;
      return true;
    }
  }
  int64_t count = r[in.a].i, size = site.dtype.bytes();
  int64_t pointer = count < 0 || count > (int64_t{1} << kOffsetBits) / std::max<int64_t>(size, 1)
                        ? 0
                        : memory_.allocate(count * size, size, site.name, options_.check_uninitialized);
  if (pointer == 0) {
    return fail(resource_error("interpret/memory", "no memory for '" + site.name + "' (" + std::to_string(count) +
                                                       " elements of " + site.dtype.str() + ")"),
                site.node);
  }
  memory_.find(pointer)->site = in.b;
  if (shared) thread.shared->emplace(key, pointer);
  r[in.dst].i = pointer;
  return true;
}

void Machine::release(Thread& thread, const Insn& in, const Slot* r) {
  if (is_shared(thread, program_.allocations[in.b])) return;  // shared by the team
  const Allocation* allocation = memory_.find(r[in.dst].i);
  if (allocation && !thread.levels.empty() && options_.check_races) record_writes_of(*allocation);
  memory_.release(r[in.dst].i);
}

void Machine::record_writes_of(const Allocation& allocation) {
  if (!allocation.written) return;
  std::vector<uint32_t>& stamps = freed_writes_[allocation.site];
  stamps.resize(std::max(stamps.size(), static_cast<size_t>(allocation.size / allocation.granule)));
  for (int64_t g = 0; (g + 1) * allocation.granule <= allocation.size; ++g) {
    if (allocation.written[g * allocation.granule]) stamps[g] = clock_;
  }
}

int64_t Machine::constant_memory(int number) {
  int64_t& pointer = constants_[number];
  if (pointer == 0) {
    const TensorData& data = *program_.constants[number];
    pointer = memory_.adopt(const_cast<char*>(data.bytes.data()), static_cast<int64_t>(data.bytes.size()),
                            data.dtype.bytes(), false, "a constant");
  }
  return pointer;
}

}  // namespace tilewright::interpreter
