// The mutators there are; what each changes stands at the top of its file.
#pragma once

#include "search/mutators/mutator.h"

namespace tilewright::search {

class MutateTileSize final : public PartOf<MutateTileSize, Mutator> {
 public:
  Result<std::optional<Trace>> apply(const Trace& trace, Random& random) const override;
};

class MutateUnroll final : public PartOf<MutateUnroll, Mutator> {
 public:
  Result<std::optional<Trace>> apply(const Trace& trace, Random& random) const override;
};

class MutateThreadBinding final : public PartOf<MutateThreadBinding, Mutator> {
 public:
  Result<std::optional<Trace>> apply(const Trace& trace, Random& random) const override;
};

struct MutateParallelOptions {
  int64_t max_jobs_per_core = 16;
  using Members = Fields<&MutateParallelOptions::max_jobs_per_core>;
  static constexpr size_t kRequired = 1;
};

class MutateParallel final : public PartOf<MutateParallel, Mutator, MutateParallelOptions> {
 public:
  using PartOf::PartOf;
  Status initialize(const TuneContext& context) override;
  Result<std::optional<Trace>> apply(const Trace& trace, Random& random) const override;

 private:
  int64_t num_cores_ = 1;
  Ref<Module> module_;
};

class MutateComputeLocation final : public PartOf<MutateComputeLocation, Mutator> {
 public:
  Status initialize(const TuneContext& context) override;
  Result<std::optional<Trace>> apply(const Trace& trace, Random& random) const override;

 private:
  Ref<Module> module_;
};

}  // namespace tilewright::search
