// The postprocessors there are; what each does stands at the top of its file.
#pragma once

#include "search/postprocs/postproc.h"
#include "search/warnings.h"

namespace tilewright::search {

class DisallowDynamicLoop final : public PartOf<DisallowDynamicLoop, Postproc> {
 public:
  Result<bool> apply(Schedule& schedule) const override;
};

class RewriteParallelVectorizeUnroll final : public PartOf<RewriteParallelVectorizeUnroll, Postproc> {
 public:
  Result<bool> apply(Schedule& schedule) const override;
};

class RewriteReductionBlock final : public PartOf<RewriteReductionBlock, Postproc> {
 public:
  Result<bool> apply(Schedule& schedule) const override;
};

struct RewriteTensorizeOptions {
  bool vectorize_init_loop = false;  ///< for inits for which there is no intrinsic
  using Members = Fields<&RewriteTensorizeOptions::vectorize_init_loop>;
};

class RewriteTensorize final : public PartOf<RewriteTensorize, Postproc, RewriteTensorizeOptions> {
 public:
  using PartOf::PartOf;
  Status initialize(const TuneContext& context) override;
  Result<bool> apply(Schedule& schedule) const override;

 private:
  Warnings warnings_;
};

class RewriteLayout final : public PartOf<RewriteLayout, Postproc> {
 public:
  Result<bool> apply(Schedule& schedule) const override;
};

class RewriteCooperativeFetch final : public PartOf<RewriteCooperativeFetch, Postproc> {
 public:
  Status initialize(const TuneContext& context) override;
  Result<bool> apply(Schedule& schedule) const override;

 private:
  int64_t warp_size_ = 0;  // 0: the target has no warps
};

struct RewriteUnboundBlockOptions {
  int64_t max_threadblocks = 256;  ///< largest number of thread blocks of a loop
  using Members = Fields<&RewriteUnboundBlockOptions::max_threadblocks>;
};

class RewriteUnboundBlock final : public PartOf<RewriteUnboundBlock, Postproc, RewriteUnboundBlockOptions> {
 public:
  using PartOf::PartOf;
  Status initialize(const TuneContext& context) override;
  Result<bool> apply(Schedule& schedule) const override;

 private:
  int64_t max_threads_per_block_ = 0;  // 0: not initialized for a target that has blocks of threads
};

struct VerifyGPUCodeOptions {
  bool open_grids = false;  ///< the arguments of a call may say how many blocks of threads there are
  using Members = Fields<&VerifyGPUCodeOptions::open_grids>;
};

class VerifyGPUCode final : public PartOf<VerifyGPUCode, Postproc, VerifyGPUCodeOptions> {
 public:
  using PartOf::PartOf;
  Status initialize(const TuneContext& context) override;
  Result<bool> apply(Schedule& schedule) const override;

 private:
  std::optional<Target> target_;
};

struct VerifyVTCMLimitOptions {
  int64_t vtcm_capacity = 0;  ///< bytes; 0: what the target has
  using Members = Fields<&VerifyVTCMLimitOptions::vtcm_capacity>;
};

class VerifyVTCMLimit final : public PartOf<VerifyVTCMLimit, Postproc, VerifyVTCMLimitOptions> {
 public:
  using PartOf::PartOf;
  Status initialize(const TuneContext& context) override;
  Result<bool> apply(Schedule& schedule) const override;
};

class DisallowAsyncStridedMemCopy final : public PartOf<DisallowAsyncStridedMemCopy, Postproc> {
 public:
  Result<bool> apply(Schedule& schedule) const override;
};

}  // namespace tilewright::search
