#include "search/features/per_store_features.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>

#include "ir/traverse.h"
#include "search/batch.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

using analysis::AccessFact;
using analysis::BufferFact;
using analysis::LoopFact;
using analysis::LoopProgram;
using analysis::LoopSum;
using analysis::Operations;
using analysis::Span64;
using analysis::StoreFact;

double logarithm(double x) { return std::log2(std::fabs(x) + 1); }
double elements(const std::vector<int64_t>& shape) {
  double product = 1;
  for (int64_t extent : shape) product *= static_cast<double>(std::max<int64_t>(extent, extent < 0 ? 1 : 0));
  return product;
}

/// The elements of one buffer that the stores under a loop access.
struct Touched {
  int buffer;
  int stores = 0;  ///< number of stores
  double least = 0, sum = 0;
};

enum class Reuse { kLoop, kSerial, kNone };

/// The use of one buffer by a store.
struct BufferUse {
  explicit BufferUse(int id) : buffer(id) {}
  int buffer;
  bool reads = false, writes = false;
  std::vector<const std::vector<LoopSum>*> indices;
  std::vector<double> touched;  ///< elements under each loop of the nest
  double bytes = 0, unique_bytes = 1, lines = 1, unique_lines = 1;
  Reuse reuse = Reuse::kNone;
  double reuse_iterations = 0, reuse_bytes = 0, reuse_count = 0;
  double stride = 0;
};

class Extractor {
 public:
  Extractor(const LoopProgram& program, const PerStoreOptions& options, bool is_gpu)
      : program_(program), options_(options), is_gpu_(is_gpu), touched_under_(program.loops.size()) {}

  FeatureMatrix run(const std::vector<double>& workload);

 private:
  using Row = std::vector<double>;

  Row row(const StoreFact& store);
  void put_operations(const StoreFact& store, Row& row) const;
  void put_loops(ForKind kind, Row& row) const;
  void put_threads(Row& row) const;
  std::vector<BufferUse> uses(const StoreFact& store) const;
  /// Computes the elements that are accessed under each loop, and adds them to touched_under_.
  void touch(std::vector<BufferUse>& uses);
  void measure_lines(BufferUse& use) const;
  double step_in(const BufferUse& use, uint32_t loop) const;
  /// Returns the extent of the accessed range of one dimension in the loops from a depth on.
  double extent_under(const BufferUse& use, size_t dimension, int depth) const;
  void find_reuse(BufferUse& use, double bytes_of_one_each) const;
  void put_buffers(std::vector<BufferUse>& uses, Row& row) const;
  void put_intensity(const StoreFact& store, Row& row) const;
  void put_allocation(const BufferFact& buffer, Row& row) const;

  const LoopProgram& program_;
  const PerStoreOptions& options_;
  bool is_gpu_;
  std::vector<std::vector<Touched>> touched_under_;  ///< per loop
  // The current store:
  std::vector<int> nest_;
  std::vector<double> bytes_under_;  ///< per loop of the nest, bytes that the store accesses
  double iterations_ = 1;
};

void Extractor::put_operations(const StoreFact& store, Row& row) const {
  for (double count : store.work.floats) row.push_back(logarithm(count * iterations_));
  for (double count : store.work.ints) row.push_back(logarithm(count * iterations_));
  row.push_back(logarithm(store.work.logic * iterations_));
  row.push_back(logarithm(store.work.selects * iterations_));
}

void Extractor::put_loops(ForKind kind, Row& row) const {
  int number = 0;
  double product = 1, innermost = 0;
  for (int l : nest_) {
    const LoopFact& loop = program_.loops[l];
    if (loop.kind != kind) continue;
    ++number;
    innermost = static_cast<double>(loop.count());
    product *= innermost;
  }
  row.push_back(logarithm(number));
  row.push_back(logarithm(number ? product : 0));
  row.push_back(logarithm(innermost));
  for (int position = 0; position < 8; ++position) row.push_back(position == (number ? 7 : 0) ? 1 : 0);
}

void Extractor::put_threads(Row& row) const {
  row.push_back(is_gpu_ ? 1 : 0);
  for (std::string_view tag :
       {"blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z", "vthread"}) {
    double extent = 1;
    for (int at : reversed(nest_)) {
      const LoopFact& loop = program_.loops[at];
      bool is_it = tag == "vthread" ? loop.thread_tag.starts_with(tag) : loop.thread_tag == tag;
      if (is_it) extent = static_cast<double>(loop.count());
    }
    row.push_back(logarithm(extent));
  }
}

std::vector<BufferUse> Extractor::uses(const StoreFact& store) const {
  std::vector<BufferUse> result;
  for (const AccessFact& access : store.accesses) {
    auto use = find_if(result, [&](const auto& u) { return u.buffer == access.buffer; });
    if (use == result.end()) use = result.insert(result.end(), BufferUse(access.buffer));
    (access.writes ? use->writes : use->reads) = true;
    // A buffer that is stored to counts where it is stored to.
    if (access.writes || !use->writes) use->indices.push_back(&access.index);
  }
  return result;
}

void Extractor::touch(std::vector<BufferUse>& uses) {
  bytes_under_.assign(nest_.size(), 0);
  for (BufferUse& use : uses) use.touched.assign(nest_.size(), 0);
  for (size_t depth = nest_.size(); depth-- > 0;) {
    for (BufferUse& use : uses) {
      const BufferFact& buffer = program_.buffers[use.buffer];
      double touched = 1;
      for (size_t d : indices_of(buffer.shape)) touched *= extent_under(use, d, static_cast<int>(depth));
      use.touched[depth] = std::max(touched, 0.0);
      bytes_under_[depth] += use.touched[depth] * buffer.element_bytes();
      std::vector<Touched>& all = touched_under_[nest_[depth]];
      auto entry = find_if(all, [&](const Touched& t) { return t.buffer == use.buffer; });
      if (entry == all.end()) entry = all.insert(all.end(), Touched{use.buffer, 0, use.touched[depth]});
      ++entry->stores;
      entry->least = std::min(entry->least, use.touched[depth]);
      entry->sum += use.touched[depth];
    }
  }
}

void Extractor::measure_lines(BufferUse& use) const {
  const BufferFact& buffer = program_.buffers[use.buffer];
  int size = buffer.element_bytes(), loops = static_cast<int>(nest_.size());
  use.bytes = size * iterations_;
  if (loops == 0) return;
  use.unique_bytes = use.touched[0] * size;
  double run = 1;  // bytes of the innermost dimension that is accessed as a whole
  for (size_t d = buffer.shape.size(); d-- > 0;) {
    if (extent_under(use, d, 0) != static_cast<double>(buffer.shape[d])) continue;
    run = static_cast<double>(buffer.shape[d]) * size;
    break;
  }
  // The stride of the innermost loop with a stride other than 0, and the number of iterations inside of it.
  double step = 0, still = 1;
  int at = loops - 1;
  for (; at >= 0; --at) {
    step = step_in(use, program_.loops[nest_[at]].atom);
    if (step != 0) break;
    still *= static_cast<double>(program_.loops[nest_[at]].count());
  }
  use.stride = at == loops - 1 ? step : 0;
  double line = static_cast<double>(options_.cache_line_bytes);
  double lines = still > 0 ? iterations_ / still * std::min(1.0, step * size / line) : 0;
  use.lines = std::max(1.0, lines);
  use.unique_lines = std::max(1.0, run > 0 ? use.unique_bytes / std::min(line, run) : 0);
}

/// Returns the smallest stride of the loop, in elements, over all accesses to the buffer. The stride of an access is
/// that of the last dimension that depends on the loop.
double Extractor::step_in(const BufferUse& use, uint32_t loop) const {
  const BufferFact& buffer = program_.buffers[use.buffer];
  double least = -1;
  for (const std::vector<LoopSum>* index : use.indices) {
    double elements = 1;
    for (size_t d = index->size(); d-- > 0;) {
      if (double step = std::fabs(static_cast<double>(program_.sums.step_of((*index)[d], loop))); step != 0) {
        least = least < 0 ? step * elements : std::min(least, step * elements);
        break;
      }
      elements *= static_cast<double>(std::max<int64_t>(buffer.shape[d], 1));
    }
  }
  return std::max(least, 0.0);
}

void Extractor::find_reuse(BufferUse& use, double bytes_of_one_each) const {
  analysis::Levels used = 0;
  for (const std::vector<LoopSum>* index : use.indices) {
    for (const LoopSum& sum : *index) used |= program_.sums.levels(sum);
  }
  auto bytes_under = [&](int loop) {
    double bytes = 0;
    for (const Touched& t : touched_under_[loop]) bytes += t.sum * program_.buffers[t.buffer].element_bytes();
    return bytes;
  };
  double inside = 1;
  for (size_t at = nest_.size(); at-- > 0;) {
    const LoopFact& loop = program_.loops[nest_[at]];
    if (!(used & analysis::level_bit(loop.depth))) {
      use.reuse = Reuse::kLoop;
      use.reuse_count = static_cast<double>(loop.count());
      use.reuse_iterations = inside;
      use.reuse_bytes = at + 1 == nest_.size() ? bytes_of_one_each : bytes_under(nest_[at + 1]);
      return;
    }
    inside *= static_cast<double>(loop.count());
    const std::vector<Touched>& all = touched_under_[nest_[at]];
    auto entry = find_if(all, [&](const Touched& t) { return t.buffer == use.buffer; });
    if (entry->stores < 2) continue;
    double extent = std::max(1.0, static_cast<double>(loop.count()));
    use.reuse = Reuse::kSerial;
    use.reuse_count = entry->stores - 1;
    use.reuse_iterations = entry->least / extent;
    use.reuse_bytes = bytes_under(nest_[at]) / extent;
    return;
  }
}

void Extractor::put_buffers(std::vector<BufferUse>& uses, Row& row) const {
  std::ranges::sort(uses, [&](const BufferUse& a, const BufferUse& b) {
    if (a.lines != b.lines) return a.lines > b.lines;
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    const std::string &x = program_.buffers[a.buffer].buffer->name, &y = program_.buffers[b.buffer].buffer->name;
    return x != y ? x < y : a.buffer < b.buffer;
  });
  for (int i = 0; i < options_.buffers_per_store; ++i) {
    if (static_cast<size_t>(i) >= uses.size()) {
      row.insert(row.end(), 18, 0.0);
      continue;
    }
    const BufferUse& use = uses[i];
    row.push_back(use.reads && !use.writes);
    row.push_back(use.writes && !use.reads);
    row.push_back(use.reads && use.writes);
    for (double x : {use.bytes, use.unique_bytes, use.lines, use.unique_lines}) row.push_back(logarithm(x));
    for (Reuse kind : {Reuse::kLoop, Reuse::kSerial, Reuse::kNone}) row.push_back(use.reuse == kind);
    for (double x : {use.reuse_iterations, use.reuse_bytes, use.reuse_count}) row.push_back(logarithm(x));
    double times = use.reuse_count > 0 ? use.reuse_count : 0.5;
    for (double x : {use.bytes, use.unique_bytes, use.lines, use.unique_lines}) row.push_back(logarithm(x / times));
    row.push_back(logarithm(use.stride));
  }
}

/// Adds samples of the arithmetic intensity curve: operations per byte of each loop, from the innermost outward, over
/// the operations of the loop, sampled at equal distances.
void Extractor::put_intensity(const StoreFact& store, Row& row) const {
  size_t loops = nest_.size();
  std::vector<double> operations(loops), intensity(loops);
  double done = store.work.all_floats();
  for (size_t i = 0; i < loops; ++i) {
    done *= static_cast<double>(program_.loops[nest_[loops - 1 - i]].count());
    operations[i] = done;
    double bytes = bytes_under_[loops - 1 - i];
    intensity[i] = bytes > 0 ? done / bytes : 0;
  }
  size_t at = 0;
  for (int i = 1; i <= options_.arith_intensity_curve_num_samples; ++i) {
    if (done <= 0 || loops == 0) {
      row.push_back(0);
      continue;
    }
    double wanted = done * i / options_.arith_intensity_curve_num_samples;
    while (at + 1 < loops && operations[at] < wanted - 1e-4) ++at;
    double value = intensity[at];
    if (at > 0 && operations[at] > operations[at - 1]) {
      double slope = (intensity[at] - intensity[at - 1]) / (operations[at] - operations[at - 1]);
      value = intensity[at - 1] + slope * (wanted - operations[at - 1]);
    }
    row.push_back(logarithm(value));
  }
}

void Extractor::put_allocation(const BufferFact& buffer, Row& row) const {
  double iterations = 1, numel = elements(buffer.shape);
  for (int l = buffer.location; l >= 0; l = program_.loops[l].parent) {
    iterations *= static_cast<double>(program_.loops[l].count());
  }
  row.push_back(logarithm(numel * buffer.element_bytes()));
  row.push_back(logarithm(numel * iterations));
  row.push_back(logarithm(iterations));
  row.push_back(logarithm(iterations > 0 ? iterations_ / iterations : 0));
}

double Extractor::extent_under(const BufferUse& use, size_t dimension, int depth) const {
  if (nest_.empty()) return 1;
  Span64 span{Span64::kFar, -Span64::kFar};
  for (const std::vector<LoopSum>* index : use.indices) {
    Span64 one = program_.sums.bounds((*index)[dimension], analysis::levels_from(depth));
    span = {std::min(span.lo, one.lo), std::max(span.hi, one.hi)};
  }
  if (span.is_known()) return static_cast<double>(span.hi - span.lo + 1);
  return static_cast<double>(std::max<int64_t>(program_.buffers[use.buffer].shape[dimension], 1));
}

Extractor::Row Extractor::row(const StoreFact& store) {
  nest_ = program_.nest(store.loop);
  iterations_ = 1;
  for (int l : nest_) iterations_ *= static_cast<double>(program_.loops[l].count());
  Row row;
  row.reserve(options_.columns());
  put_operations(store, row);
  for (ForKind kind : {ForKind::kVectorized, ForKind::kUnrolled, ForKind::kParallel}) put_loops(kind, row);
  put_threads(row);
  std::vector<BufferUse> uses = this->uses(store);
  touch(uses);
  double one_each = 0;
  for (const BufferUse& use : uses) one_each += nest_.empty() ? 0 : program_.buffers[use.buffer].element_bytes();
  for (BufferUse& use : uses) {
    measure_lines(use);
    find_reuse(use, one_each);
  }
  put_buffers(uses, row);
  put_intensity(store, row);
  put_allocation(program_.buffers[store.accesses[0].buffer], row);
  row.push_back(logarithm(iterations_));
  row.push_back(logarithm(static_cast<double>(nest_.size())));
  double step = 0;
  for (int l : nest_) {
    if (program_.loops[l].auto_unroll_step > 0) step = static_cast<double>(program_.loops[l].auto_unroll_step);
  }
  row.push_back(logarithm(step));
  return row;
}

FeatureMatrix Extractor::run(const std::vector<double>& workload) {
  std::vector<std::pair<int, Row>> rows;  // by buffer, in order of the first store
  for (const StoreFact& store : program_.stores) {
    if (store.is_constant) continue;
    int buffer = store.accesses[0].buffer;
    auto it = find_if(rows, [&](const auto& entry) { return entry.first == buffer; });
    if (it == rows.end()) it = rows.insert(rows.end(), {buffer, {}});
    it->second = row(store);
  }
  FeatureMatrix matrix{rows.size(), options_.columns(), {}};
  matrix.values.reserve(matrix.rows * matrix.columns);
  for (auto& [buffer, row] : rows) {
    append_range(matrix.values, row);
    append_range(matrix.values, workload);
  }
  return matrix;
}

/// Returns the kinds of operators that the names of the blocks indicate.
std::vector<double> kinds_of_blocks(const Ref<Module>& task) {
  static constexpr std::string_view kNames[][2] = {{"softmax", "softmax"},
                                                   {"max", "min"},
                                                   {"add", "add"},
                                                   {"batch_matmul", "batch_matmul"},
                                                   {"matmul", "matmul"},
                                                   {"depthwiseconv2d", "depthwiseconv2d"},
                                                   {"conv2d_winograd", "conv2d_winograd"},
                                                   {"conv2d", "conv2d"}};
  std::vector<double> flags(std::size(kNames), 0);
  if (!task.defined()) return flags;
  visit(task, [&](const Ref<Block>& block) {
    std::string name = block->name_hint;
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    for (size_t i = 0; i < std::size(kNames); ++i) {
      bool is_it = name.find(kNames[i][0]) != name.npos || name.find(kNames[i][1]) != name.npos;
      if (!is_it) continue;
      flags[i] = 1;
      return;
    }
  });
  return flags;
}

}  // namespace

FeatureMatrix per_store_features(const Ref<Module>& module, bool is_gpu, const Ref<Module>& task,
                                 const PerStoreOptions& options) {
  std::vector<double> workload;
  if (options.extract_workload) workload = kinds_of_blocks(task);
  LoopProgram program = analysis::loop_program(module);
  return Extractor(program, options, is_gpu).run(workload);
}

Status PerStoreFeature::check(const Options& options) {
  if (options.buffers_per_store < 1 || options.arith_intensity_curve_num_samples < 1 || options.cache_line_bytes < 1) {
    return argument_error("features/option", "the numbers of buffers, samples and bytes of a cache line are at least 1",
                          "leave them out for the published ones");
  }
  return Ok{};
}

Result<std::vector<FeatureMatrix>> PerStoreFeature::extract_from(const TuneContext& context,
                                                                 const MeasureCandidates& candidates) {
  bool is_gpu = context.target && context.target->is_in(TargetSet::kGpu);
  std::vector<FeatureMatrix> result(candidates.size());
  on_threads(context.num_threads, candidates.size(), [&](size_t i) {
    result[i] = per_store_features(candidates[i].schedule.module(), is_gpu, context.module, options_);
  });
  return result;
}

}  // namespace tilewright::search
