// The features of TVM's cost models: a row of numbers for each buffer that a program stores to.
//
// Columns, all but the marked ones as log2(|x| + 1), with f = 57 + 18 * buffers_per_store:
//   0-15    operations of the stored values, times the iterations of the loops around: of floats (multiply-add, which
//   is
//           never counted, add or subtract, multiply, divide, compare, pure calls, other calls), the same of integers,
//           logic, selects
//   16-48   vectorized loops: how many, product of their extents, extent of the innermost; one of eight flags, where
//           only "none" and "mixed" occur; the same of unrolled and of parallel loops
//   49-56   whether the program is for a GPU (as it is), extents of blockIdx.x, .y, .z, threadIdx.x, .y, .z and vthread
//   57-f    for each buffer of the store, those with most cache lines first: whether it is read, written, or both;
//           touched and distinct bytes and cache lines; how values are reused (in a loop with stride 0, in another
//           statement, not at all), after how many iterations and bytes, and how often; bytes and lines by that
//           number; stride of the innermost loop
//   then    arith_intensity_curve_num_samples points of the curve of operations per byte over the share of the
//           operations
//   then 4  bytes of the buffer, elements times the iterations of the loops around its allocation, those iterations,
//           and by how many times more often the store runs
//   then 3  iterations of the loops around the store, number of these loops, unrolling asked for
//   then 8  if wanted: what the blocks of the task are called like (softmax, max or min, add, batch_matmul, matmul,
//           depthwiseconv2d, conv2d_winograd, conv2d), 0 or 1
//
// A buffer that is stored to more than once has one row, that of the last store; stores of numbers have none.
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

/// The features of one program; `task`, which may be null, has the names for extract_workload. Total over all programs.
FeatureMatrix per_store_features(const Ref<Module>& module, bool is_gpu, const Ref<Module>& task,
                                 const PerStoreOptions& options);

class PerStoreFeature final : public FeatureExtractor {
 public:
  /// Refuses options that are not positive (features/option).
  using Options = PerStoreOptions;
  static Status check(const Options& options);
  explicit PerStoreFeature(const Options& options) : options_(options) {}
  const PerStoreOptions& options() const { return options_; }
  /// Runs on as many threads as the context allows.
  Result<std::vector<FeatureMatrix>> extract_from(const TuneContext& context,
                                                  const MeasureCandidates& candidates) override;

 private:
  Options options_;
};

}  // namespace tilewright::search
