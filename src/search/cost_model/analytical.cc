#include "search/cost_model/analytical.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/loop_program.h"
#include "analysis/threads.h"
#include "search/batch.h"
#include "search/cost_model/device_cost.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

using analysis::AccessFact;
using analysis::BufferFact;
using analysis::Levels;
using analysis::LoopFact;
using analysis::LoopProgram;
using analysis::LoopSum;
using analysis::LoopSums;
using analysis::Operations;
using analysis::StoreFact;

constexpr double kSmallLoop = 8;    // largest trip count that the back end fully unrolls without a hint
constexpr double kFewest = 8;       // smallest trip count that is vectorized without a hint
constexpr double kMostCopies = 16;  // most copies of the body that are unrolled without a hint
constexpr double kScattered = 1.5;  // factor of the memory time for short rows

/// An access, and its strides in the loops of the nest.
struct Stream {
  const AccessFact* access;
  int size;                   ///< bytes of an element
  std::vector<double> steps;  ///< per loop of the nest, the stride in elements; 0 if invariant
  std::vector<bool> even;     ///< per loop of the nest, whether the stride is constant
  std::vector<bool> moves;    ///< per loop of the nest, whether the access depends on the loop
};

/// Estimates the cost of one store in its loop nest, of which the inner loops are unrolled to straight-line code.
class StoreModel {
 public:
  StoreModel(LoopProgram& program, const StoreFact& store, const Target& target, const MachineModel& machine);

  double compute_cycles();
  double memory_cycles(double program_bytes) const;
  double overhead_seconds() const;
  /// Average number of busy cores.
  double threads() const { return threads_; }
  double chunks() const { return chunks_; }
  double spilled() const { return spilled_; }

 private:
  void read_streams();
  void choose_vector();
  void choose_block();
  double extent(size_t at) const { return static_cast<double>(program_.loops[nest_[at]].count()); }
  /// Number of vectors that one execution of the straight-line code accesses.
  double vectors(const Stream& stream) const;
  double divisions_done_before() const;
  double work_of_one() const;
  double footprint(const Stream& stream, size_t depth, double way) const;
  double lines(const Stream& stream, size_t depth) const;
  double traffic(size_t level_bytes, double way) const;

  LoopProgram& program_;
  const StoreFact& store_;
  const Target& target_;
  const MachineModel& machine_;
  std::vector<int> nest_;
  std::vector<Stream> streams_;
  int vector_ = -1;  ///< the vectorized loop of the nest; -1 for scalar code
  double lanes_ = 1;
  std::vector<bool> block_;  ///< per loop of the nest, whether it is unrolled
  /// Whether a fused loop divides in its indices, although all its accesses have constant strides: the generated code
  /// then has no divisions.
  bool divides_in_vain_ = false;
  double iterations_ = 1, threads_ = 1, chunks_ = 1, spilled_ = 0, entries_ = 0;
};

StoreModel::StoreModel(LoopProgram& program, const StoreFact& store, const Target& target, const MachineModel& machine)
    : program_(program), store_(store), target_(target), machine_(machine), nest_(program.nest(store.loop)) {
  for (size_t at : indices_of(nest_)) {
    const LoopFact& loop = program_.loops[nest_[at]];
    bool once = store.is_init && store.reduction & analysis::level_bit(loop.depth);
    double around = iterations_;
    iterations_ *= once ? 1 : extent(at);
    if (loop.kind != ForKind::kParallel && loop.kind != ForKind::kThreadBinding) continue;
    if (entries_ == 0) entries_ = around;
    // Only the outermost parallel loops, if directly nested, are distributed to threads.
    if (around == chunks_ * entries_) chunks_ *= extent(at);
  }
  double cores = std::max(1, target.num_cores);
  threads_ = chunks_ <= 1 ? 1 : chunks_ / std::ceil(chunks_ / cores);
  read_streams();
  choose_vector();
  choose_block();
}

void StoreModel::read_streams() {
  for (const AccessFact& access : store_.accesses) {
    const BufferFact& buffer = program_.buffers[access.buffer];
    Stream stream{&access, buffer.element_bytes(), {}, {}, {}};
    // The flat offset: a fused loop, with indices (f // 4, f % 4), may have a constant stride in it.
    LoopSum place = LoopSums::constant(0);
    int64_t size = 1;
    for (size_t d = access.index.size(); d-- > 0;) {
      place = program_.sums.add(place, access.index[d], size);
      size *= std::max<int64_t>(buffer.shape[d], 1);
    }
    for (int l : nest_) {
      const LoopFact& loop = program_.loops[l];
      double step = 0, elements = 1;
      bool even = true, moves = false;
      for (size_t d = access.index.size(); d-- > 0;) {
        if (program_.sums.levels(access.index[d]) & analysis::level_bit(loop.depth)) {
          moves = true;
          even = even && program_.sums.is_even(access.index[d], loop.atom);
          step += static_cast<double>(program_.sums.step_of(access.index[d], loop.atom)) * elements;
        }
        elements *= static_cast<double>(std::max<int64_t>(buffer.shape[d], 1));
      }
      if (moves && !even && program_.sums.is_even(place, loop.atom)) {
        even = divides_in_vain_ = true;
        step = static_cast<double>(program_.sums.step_of(place, loop.atom));
      }
      stream.steps.push_back(step);
      stream.even.push_back(even);
      stream.moves.push_back(moves);
    }
    // Equal accesses count once.
    bool known = any_of(streams_, [&](const Stream& other) {
      return other.access->buffer == access.buffer && other.access->writes == access.writes &&
             other.access->index == access.index;
    });
    if (!known) streams_.push_back(std::move(stream));
  }
}

/// Selects the vectorized loop: the annotated one, else the innermost loop in which the store is contiguous; inner
/// loops in which the store is invariant are skipped.
void StoreModel::choose_vector() {
  const Stream& written = streams_[0];
  for (size_t at = nest_.size(); at-- > 0;) {
    if (program_.loops[nest_[at]].kind == ForKind::kVectorized && extent(at) > 1) vector_ = static_cast<int>(at);
  }
  for (size_t at = nest_.size(); at-- > 0 && vector_ < 0;) {
    const LoopFact& loop = program_.loops[nest_[at]];
    if (extent(at) <= 1) continue;
    bool plain = loop.kind == ForKind::kSerial || loop.kind == ForKind::kParallel;
    if (plain && written.moves[at] && written.even[at] && extent(at) >= kFewest && written.steps[at] == 1)
      vector_ = static_cast<int>(at);
    if (!written.moves[at]) continue;
    // For expensive elementary functions, vectorizing pays even with gathers.
    if (vector_ < 0 && plain && written.even[at] && extent(at) >= kFewest && store_.work.elementary > 0) {
      vector_ = static_cast<int>(at);
    }
    break;
  }
  if (vector_ < 0) return;
  int size = written.size;
  for (const Stream& stream : streams_) size = std::max(size, stream.size);
  double widest = std::max(1.0, target_.vector_bits / 8.0 / size);
  lanes_ = std::min(widest, std::max(1.0, extent(vector_)));
}

/// Selects the loops to unroll, from the innermost one outward, within a limit on the copies of the body.
void StoreModel::choose_block() {
  block_.assign(nest_.size(), false);
  double asked = 0, copies = 1;
  for (int l : nest_) asked = std::max(asked, static_cast<double>(program_.loops[l].auto_unroll_step));
  for (size_t at = nest_.size(); at-- > 0;) {
    const LoopFact& loop = program_.loops[nest_[at]];
    double times = static_cast<int>(at) == vector_ ? std::ceil(extent(at) / lanes_) : extent(at);
    bool wanted = loop.kind == ForKind::kUnrolled || loop.kind == ForKind::kVectorized;
    bool small = times <= kSmallLoop && copies * times <= kMostCopies;
    bool parallel = analysis::runs_on_threads(loop.kind);
    bool taken = !parallel && (small || (wanted && copies * times <= 1024) || copies * times <= asked);
    if (static_cast<int>(at) == vector_ && !taken && !parallel) continue;  // a loop over vectors
    if (!taken) break;
    block_[at] = true;
    copies *= times;
  }
}

double StoreModel::vectors(const Stream& stream) const {
  double count = 1;
  for (size_t at : indices_of(nest_)) {
    if (!block_[at] || !stream.moves[at]) continue;
    count *= static_cast<int>(at) == vector_ ? std::ceil(extent(at) / lanes_) : extent(at);
  }
  if (vector_ < 0 || !stream.moves[vector_]) return count;
  // Accesses with a large or varying stride load one element at a time; a small stride loads all elements between.
  double step = std::fabs(stream.steps[vector_]);
  bool apart = !stream.even[vector_] || step > 4;
  return count * (apart ? lanes_ * machine_.gather_cycles_per_lane : std::max(1.0, step));
}

/// Returns the number of index divisions that are not executed in each iteration.
double StoreModel::divisions_done_before() const {
  const bool in_vain =
      divides_in_vain_ && vector_ >= 0 && all_of(streams_, [&](const Stream& s) { return s.even[vector_]; });
  // Divisions that are invariant in the inner loops are hoisted.
  Levels inner = 0;
  for (size_t at = nest_.size(); at-- > 0;) {
    inner |= analysis::level_bit(program_.loops[nest_[at]].depth);
    if (!block_[at]) break;
  }
  double count = 0;
  for (const AccessFact& access : store_.accesses) {
    for (const LoopSum& index : access.index) {
      count += program_.sums.work(index).div - (in_vain ? 0 : program_.sums.work(index, inner).div);
    }
  }
  return std::min(count, store_.work.ints[Operations::kDivMod]);
}

/// Returns the cycles of the vector ports for computing one value, apart from fused multiply-adds.
double StoreModel::work_of_one() const {
  const Operations& work = store_.work;
  double fused = std::min(work.floats[Operations::kAddSub], work.floats[Operations::kMul]);
  double plain = work.floats[Operations::kAddSub] + work.floats[Operations::kMul] - 2 * fused +
                 work.floats[Operations::kCompare] + work.selects + work.logic / 2;
  double calls = work.floats[Operations::kMath] + work.ints[Operations::kMath] - work.elementary;
  // Index arithmetic is shared between iterations; conditions and divisions are not.
  double ints = work.ints[Operations::kCompare] + 4 * (work.ints[Operations::kDivMod] - divisions_done_before());
  return (plain + std::max(calls, 0.0) + ints) / machine_.fma_ports + work.elementary * machine_.elementary_cycles +
         work.floats[Operations::kDivMod] * machine_.division_cycles;
}

double StoreModel::compute_cycles() {
  double copies = 1;  // copies of the body in the straight-line code
  int repeated = -1;  // the innermost loop around that code
  for (size_t at : indices_of(nest_)) {
    if (block_[at]) copies *= static_cast<int>(at) == vector_ ? std::ceil(extent(at) / lanes_) : extent(at);
    if (!block_[at]) repeated = static_cast<int>(at);
  }
  double per_vector = 1;  // iterations of the nest per execution of the straight-line code
  for (size_t at : indices_of(nest_)) {
    if (block_[at]) per_vector *= extent(at);
    if (!block_[at] && static_cast<int>(at) == vector_) per_vector *= lanes_;
  }
  double steps = std::max(1.0, iterations_ / std::max(1.0, per_vector));
  double loads = 0, stores = 0, kept = 0, passing = 0;
  double rounds = repeated < 0          ? 1
                  : repeated == vector_ ? std::ceil(extent(repeated) / lanes_)
                                        : std::max(1.0, extent(repeated));
  for (const Stream& stream : streams_) {
    double vectors = this->vectors(stream);
    bool stays = repeated >= 0 && !stream.moves[repeated];
    // An element that is both read and written needs one register.
    bool twice = stream.access->writes && any_of(streams_, [&](const Stream& other) {
                   return !other.access->writes && other.access->buffer == stream.access->buffer &&
                          other.access->index == stream.access->index;
                 });
    if (!twice) (stays ? kept : passing) += stays ? vectors : 1;
    (stream.access->writes ? stores : loads) += stays ? vectors / rounds : vectors;
  }
  double registers = kept + std::min(passing, 4.0);
  double spilled = std::max(0.0, registers - target_.vector_registers);
  spilled_ = spilled;
  const Operations& work = store_.work;
  double fused = std::min(work.floats[Operations::kAddSub], work.floats[Operations::kMul]) * copies;
  double ports = fused / machine_.fma_ports + work_of_one() * copies;
  double chain = 0;
  const Stream& written = streams_[0];
  bool carried = false;
  for (const Stream& stream : streams_) {
    carried |= repeated >= 0 && !written.moves[repeated] && !stream.access->writes &&
               stream.access->buffer == written.access->buffer;
  }
  if (carried) chain = machine_.fma_latency_cycles * copies / std::max(1.0, vectors(written));
  double operations = fused + (ports - fused / machine_.fma_ports) * machine_.fma_ports + loads + stores + 2;
  double step = std::max({ports, loads / machine_.load_ports, stores / machine_.store_ports, chain,
                          operations / machine_.issued_operations});
  // Each spilled value costs a store and a dependent load.
  return steps * (step + spilled + 0.5);
}

/// Returns the bytes of cache that an access occupies in the loops from `depth` on. Addresses at distances that are
/// multiples of `way` bytes map to the same cache set.
double StoreModel::footprint(const Stream& stream, size_t depth, double way) const {
  double run = stream.size, rows = 1, least = 0;
  // In ascending order of strides: loops with overlapping or adjacent accesses extend a contiguous run, others repeat
  // it as rows.
  std::vector<std::pair<double, double>> steps;
  for (size_t at = depth; at < nest_.size(); ++at) {
    if (stream.moves[at]) steps.push_back({std::fabs(stream.steps[at]) * stream.size, extent(at)});
  }
  std::ranges::sort(steps);
  for (auto [step, times] : steps) {
    if (times <= 1) continue;
    if (step <= std::max(run, machine_.line_bytes)) {
      run += step * (times - 1);
    } else {
      rows *= times;
      if (least == 0) least = step;
    }
  }
  double taken = std::max(run, machine_.line_bytes);
  if (rows > 1 && way > 0) {
    double shared = std::gcd(static_cast<int64_t>(least), static_cast<int64_t>(way));
    taken = std::max(taken, shared);
  }
  return rows * taken;
}

double StoreModel::lines(const Stream& stream, size_t depth) const {
  return footprint(stream, depth, 0) / machine_.line_bytes;
}

/// Returns the cache lines that are transferred into a cache of this size.
double StoreModel::traffic(size_t level_bytes, double way) const {
  size_t depth = 0;  // the outermost depth from which on all data fit into the cache
  for (; depth < nest_.size(); ++depth) {
    double needed = 0, most = 0;  // streams occupy different sets of the cache
    for (const Stream& stream : streams_) {
      needed += footprint(stream, depth, 0);
      most = std::max(most, footprint(stream, depth, way));
    }
    if (std::max(most, needed) <= 0.8 * static_cast<double>(level_bytes)) break;
  }
  double total = 0;
  for (const Stream& stream : streams_) {
    double times = 1;
    bool fresh = false;  // loops that are invariant for the data, inside of any other, reuse them
    for (size_t at = depth; at-- > 0;) {
      fresh |= stream.moves[at];
      if (fresh) times *= extent(at);
    }
    double once = lines(stream, depth);
    // The hardware prefetcher does not help with rows of a few lines.
    double scattered = 1;
    if (!nest_.empty()) {
      double run = 0;
      for (size_t at = depth; at < nest_.size(); ++at) {
        if (stream.moves[at] && std::fabs(stream.steps[at]) * stream.size <= machine_.line_bytes) {
          run = std::max(run, std::fabs(stream.steps[at]) * stream.size * extent(at));
        }
      }
      if (run < 4 * machine_.line_bytes && once > 16) scattered = kScattered;
    }
    total += once * times * scattered * (stream.access->writes ? 2 : 1);
  }
  return total;
}

double StoreModel::memory_cycles(double program_bytes) const {
  double worst = 0, sum = 0;
  struct Level {
    int64_t bytes;
    double way, rate;
  };
  Level levels[] = {{target_.l1_bytes, machine_.l1_way_bytes, machine_.l2_bytes_per_cycle},
                    {target_.l2_bytes, machine_.l2_way_bytes, machine_.l3_bytes_per_cycle},
                    {target_.l3_bytes, 0, machine_.memory_bytes_per_cycle}};
  for (const Level& level : levels) {
    if (level.bytes <= 0) continue;
    // A program that fits into this cache finds its data there, from the previous call.
    if (&level != levels && program_bytes <= 0.8 * static_cast<double>(level.bytes)) break;
    double cycles = traffic(static_cast<size_t>(level.bytes), level.way) * machine_.line_bytes / level.rate;
    worst = std::max(worst, cycles);
    sum += cycles;
  }
  return worst + 0.3 * (sum - worst);
}

double StoreModel::overhead_seconds() const { return threads_ > 1 ? entries_ * machine_.parallel_start_seconds : 0; }

}  // namespace

CostEstimate estimate_cost(const Ref<Module>& module, const Target& target, const MachineModel& machine) {
  LoopProgram program = analysis::loop_program(module);
  double program_bytes = 0;
  for (const BufferFact& buffer : program.buffers) {
    double bytes = buffer.element_bytes();
    for (int64_t extent : buffer.shape) bytes *= static_cast<double>(std::max<int64_t>(extent, 1));
    program_bytes += bytes;
  }
  CostEstimate cost;
  for (const StoreFact& store : program.stores) {
    StoreModel model(program, store, target, machine);
    double compute = model.compute_cycles() / model.threads() / machine.clock_hertz;
    double memory = model.memory_cycles(program_bytes) / model.threads() / machine.clock_hertz;
    double overhead = model.overhead_seconds();
    cost.compute += compute;
    cost.memory += memory;
    cost.overhead += overhead;
    cost.seconds += std::max(compute, memory) + 0.2 * std::min(compute, memory) + overhead;
    cost.spilled_registers = std::max(cost.spilled_registers, model.spilled());
    cost.parallel_chunks = std::max(cost.parallel_chunks, model.chunks());
  }
  return cost;
}

Status AnalyticalModel::load(const std::string&) { return Ok{}; }
Status AnalyticalModel::save(const std::string&) { return Ok{}; }
Status AnalyticalModel::update(const TuneContext&, const MeasureCandidates&, const RunnerResults&) { return Ok{}; }

Result<std::vector<double>> AnalyticalModel::predict(const TuneContext& context, const MeasureCandidates& candidates) {
  const Target target = context.target.value_or(Target::host());
  const bool is_device = target.is_in(TargetSet::kGpu);
  std::vector<double> scores(candidates.size());
  on_threads(context.num_threads, candidates.size(), [&](size_t i) {
    constexpr double kLeast = 1e-9;  // lower bound of the seconds of a call
    const Ref<Module>& module = candidates[i].schedule.module();
    // The model above is not valid for GPUs.
    scores[i] =
        1 / (kLeast + (is_device ? estimate_device_cost(module).seconds : estimate_cost(module, target).seconds));
  });
  return scores;
}

}  // namespace tilewright::search
