// Extracts the features of TVM's cost models (PerStoreFeature): a row of numbers for each buffer that a program stores
// to.
//
// Columns, as log2(|x| + 1) except for flags, with f = 57 + 18 * buffers_per_store:
//   0-15    operation counts of the stored value: for floats, multiply-add (always 0, as in TVM), add or subtract,
//           multiply, divide, compare, pure calls and other calls; the same for integers; logic; selects
//   16-48   vectorized loops: number, product of extents, innermost extent, and eight flags for the position of the
//           loops, of which only "none" and "mixed" are used; the same for unrolled and for parallel loops
//   49-56   flag for GPU programs; extents of blockIdx.x, .y, .z, threadIdx.x, .y, .z and vthread
//   57-f    for each buffer of the store, in descending order of cache lines: access type (read, write, both); bytes
//           and unique bytes; cache lines and unique cache lines; reuse type (loop with stride 0, another statement,
//           none), reuse distance in iterations and bytes, reuse count; bytes and lines divided by the reuse count;
//           stride of the innermost loop
//   then    arith_intensity_curve_num_samples points of the curve of arithmetic intensity (operations per byte)
//   then 4  allocation: bytes of the buffer; elements times iterations of the loops around the allocation; these
//           iterations; executions of the store per such iteration
//   then 3  iterations of the loops around the store, number of these loops, "auto_unroll" step
//   then 8  with extract_workload: flags for names of the task's blocks (softmax, max or min, add, batch_matmul,
//           matmul, depthwiseconv2d, conv2d_winograd, conv2d)
//
// If a buffer is stored to more than once, its row describes the last store. Stores of constants have no row.
#pragma once

#include "analysis/loop_program.h"
#include "search/features/feature_extractor.h"

namespace tilewright::search {

struct PerStoreOptions {
  int buffers_per_store = 5;
  int arith_intensity_curve_num_samples = 10;
  int64_t cache_line_bytes = 64;
  bool extract_workload = false;
  using Members = Fields<&PerStoreOptions::buffers_per_store, &PerStoreOptions::arith_intensity_curve_num_samples,
                         &PerStoreOptions::cache_line_bytes, &PerStoreOptions::extract_workload>;

  size_t columns() const {
    return 57 + 18 * size_t(buffers_per_store) + size_t(arith_intensity_curve_num_samples) + 4 + 3 +
           (extract_workload ? 8 : 0);
  }
};

/// Returns the features of one program; defined for every program. `task`: the unscheduled program, whose block names
/// extract_workload reads; may be null.
FeatureMatrix per_store_features(const Ref<Module>& module, bool is_gpu, const Ref<Module>& task,
                                 const PerStoreOptions& options);

class PerStoreFeature final : public FeatureExtractor {
 public:
  /// Refuses options that are not positive (features/option).
  using Options = PerStoreOptions;
  static Status check(const Options& options);
  explicit PerStoreFeature(const Options& options) : options_(options) {}
  const PerStoreOptions& options() const { return options_; }
  /// Extracts in parallel, on as many threads as the context allows.
  Result<std::vector<FeatureMatrix>> extract_from(const TuneContext& context,
                                                  const MeasureCandidates& candidates) override;

 private:
  Options options_;
};

}  // namespace tilewright::search
