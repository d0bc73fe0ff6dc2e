// The postprocessors there are; what each does stands at the top of its file.
#pragma once

#include "search/postprocs/postproc.h"
#include "search/warnings.h"

namespace tilewright::search {

/// What postprocessors share that need no more than a copy of themselves.
template <class Self>
class PostprocOf : public Postproc {
 public:
  std::string name() const override { return Self::kName; }
  Status initialize(const TuneContext&) override { return Ok{}; }
  std::shared_ptr<Postproc> clone() const override { return std::make_shared<Self>(static_cast<const Self&>(*this)); }
};

class DisallowDynamicLoop final : public PostprocOf<DisallowDynamicLoop> {
 public:
  static constexpr const char* kName = "DisallowDynamicLoop";
  Result<bool> apply(schedule::Schedule& schedule) const override;
};

class RewriteParallelVectorizeUnroll final : public PostprocOf<RewriteParallelVectorizeUnroll> {
 public:
  static constexpr const char* kName = "RewriteParallelVectorizeUnroll";
  Result<bool> apply(schedule::Schedule& schedule) const override;
};

class RewriteReductionBlock final : public PostprocOf<RewriteReductionBlock> {
 public:
  static constexpr const char* kName = "RewriteReductionBlock";
  Result<bool> apply(schedule::Schedule& schedule) const override;
};

class RewriteTensorize final : public PostprocOf<RewriteTensorize> {
 public:
  static constexpr const char* kName = "RewriteTensorize";
  explicit RewriteTensorize(bool vectorize_init_loop = false) : vectorize_init_loop_(vectorize_init_loop) {}
  Status initialize(const TuneContext& context) override;
  Result<bool> apply(schedule::Schedule& schedule) const override;

 private:
  bool vectorize_init_loop_;
  Warnings warnings_;
};

class RewriteLayout final : public PostprocOf<RewriteLayout> {
 public:
  static constexpr const char* kName = "RewriteLayout";
  Result<bool> apply(schedule::Schedule& schedule) const override;
};

class RewriteCooperativeFetch final : public PostprocOf<RewriteCooperativeFetch> {
 public:
  static constexpr const char* kName = "RewriteCooperativeFetch";
  Status initialize(const TuneContext& context) override;
  Result<bool> apply(schedule::Schedule& schedule) const override;

 private:
  int64_t warp_size_ = 0;  // 0: the target has no warps
};

class RewriteUnboundBlock final : public PostprocOf<RewriteUnboundBlock> {
 public:
  static constexpr const char* kName = "RewriteUnboundBlock";
  explicit RewriteUnboundBlock(int64_t max_threadblocks = 256) : max_threadblocks_(max_threadblocks) {}
  Status initialize(const TuneContext& context) override;
  Result<bool> apply(schedule::Schedule& schedule) const override;

 private:
  int64_t max_threadblocks_;
  int64_t max_threads_per_block_ = 0;  // 0: not initialized for a target that has blocks of threads
};

class VerifyGPUCode final : public PostprocOf<VerifyGPUCode> {
 public:
  static constexpr const char* kName = "VerifyGPUCode";
  Status initialize(const TuneContext& context) override;
  Result<bool> apply(schedule::Schedule& schedule) const override;

 private:
  std::optional<Target> target_;
};

class VerifyVTCMLimit final : public PostprocOf<VerifyVTCMLimit> {
 public:
  static constexpr const char* kName = "VerifyVTCMLimit";
  /// `vtcm_capacity` in bytes; 0: what the target has.
  explicit VerifyVTCMLimit(int64_t vtcm_capacity = 0) : vtcm_capacity_(vtcm_capacity) {}
  Status initialize(const TuneContext& context) override;
  Result<bool> apply(schedule::Schedule& schedule) const override;

 private:
  int64_t vtcm_capacity_;
};

class DisallowAsyncStridedMemCopy final : public PostprocOf<DisallowAsyncStridedMemCopy> {
 public:
  static constexpr const char* kName = "DisallowAsyncStridedMemCopy";
  Result<bool> apply(schedule::Schedule& schedule) const override;
};

}  // namespace tilewright::search
