#include "search/cost_model/forgiving.h"

#include <fmt/format.h>

namespace tilewright::search {

ForgivingModel::ForgivingModel(std::shared_ptr<CostModel> model, std::function<void(const Diagnostic&)> report)
    : model_(std::move(model)), report_(std::move(report)) {}

Status ForgivingModel::load(const std::string& path) { return model_->load(path); }
Status ForgivingModel::save(const std::string& path) { return model_->save(path); }

void ForgivingModel::give_up(const Diagnostic& error) {
  if (failed_) return;
  failed_ = true;
  const std::string hint = error.hint.empty() ? "" : "\n  hint: " + error.hint;
  report_(resource_error(
      "tune/cost-model",
      fmt::format("the search continues without its cost model, which failed: {}{}", error.message, hint)));
}

Status ForgivingModel::update(const TuneContext& context, const MeasureCandidates& candidates,
                              const RunnerResults& results) {
  if (failed_) return Ok{};
  if (Status updated = model_->update(context, candidates, results); !updated.ok()) give_up(updated.error());
  return Ok{};
}

Result<std::vector<double>> ForgivingModel::predict(const TuneContext& context, const MeasureCandidates& candidates) {
  const std::vector<double> no_opinion(candidates.size(), 0.0);
  if (failed_) return no_opinion;
  auto scores = model_->predict(context, candidates);
  if (scores.ok() && scores->size() == candidates.size()) return scores;
  give_up(scores.ok() ? argument_error("search/scores",
                                       fmt::format("the cost model gave {} scores for {} candidates", scores->size(),
                                                   candidates.size()),
                                       "predict() answers one number for each candidate")
                      : scores.error());
  return no_opinion;
}

}  // namespace tilewright::search
