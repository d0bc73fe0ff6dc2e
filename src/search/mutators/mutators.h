// The mutators there are; what each changes stands at the top of its file.
#pragma once

#include "search/mutators/mutator.h"

namespace tilewright::search {

/// What mutators share that need no more than a copy of themselves.
template <class Self>
class MutatorOf : public Mutator {
 public:
  Status initialize(const TuneContext&) override { return Ok{}; }
  std::shared_ptr<Mutator> clone() const override { return std::make_shared<Self>(static_cast<const Self&>(*this)); }
};

class MutateTileSize final : public MutatorOf<MutateTileSize> {
 public:
  Result<std::optional<schedule::Trace>> apply(const schedule::Trace& trace, schedule::Random& random) const override;
};

class MutateUnroll final : public MutatorOf<MutateUnroll> {
 public:
  Result<std::optional<schedule::Trace>> apply(const schedule::Trace& trace, schedule::Random& random) const override;
};

class MutateThreadBinding final : public MutatorOf<MutateThreadBinding> {
 public:
  Result<std::optional<schedule::Trace>> apply(const schedule::Trace& trace, schedule::Random& random) const override;
};

class MutateParallel final : public MutatorOf<MutateParallel> {
 public:
  explicit MutateParallel(int64_t max_jobs_per_core) : max_jobs_per_core_(max_jobs_per_core) {}
  Status initialize(const TuneContext& context) override;
  Result<std::optional<schedule::Trace>> apply(const schedule::Trace& trace, schedule::Random& random) const override;

 private:
  int64_t max_jobs_per_core_;
  int64_t num_cores_ = 1;
  Ref<Module> module_;
};

class MutateComputeLocation final : public MutatorOf<MutateComputeLocation> {
 public:
  Status initialize(const TuneContext& context) override;
  Result<std::optional<schedule::Trace>> apply(const schedule::Trace& trace, schedule::Random& random) const override;

 private:
  Ref<Module> module_;
};

}  // namespace tilewright::search
