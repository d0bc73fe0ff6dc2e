// A cost model whose failure does not end the search: its first error is reported, and after that it predicts nothing.
#pragma once

#include <functional>

#include "search/cost_model/cost_model.h"

namespace tilewright::search {

class ForgivingModel final : public CostModel {
 public:
  /// `report` receives the error, once: "tune/cost-model", with a message that has its hint.
  ForgivingModel(std::shared_ptr<CostModel> model, std::function<void(const Diagnostic&)> report);
  Status load(const std::string& path) override;
  Status save(const std::string& path) override;
  Status update(const TuneContext& context, const MeasureCandidates& candidates, const RunnerResults& results) override;
  /// After an error, returns the same score for all candidates: sorting by score keeps their order.
  Result<std::vector<double>> predict(const TuneContext& context, const MeasureCandidates& candidates) override;

  /// Stops using the model, as after its error; the caller found another one.
  void give_up(const Diagnostic& error);

 private:
  std::shared_ptr<CostModel> model_;
  std::function<void(const Diagnostic&)> report_;
  bool failed_ = false;
};

}  // namespace tilewright::search
