#include "search/cost_model/forgiving.h"

#include <fmt/format.h>

namespace tilewright::search {
namespace {

/// Of a traceback of Python its last line, which says what was raised, and where.
std::string in_one_line(const std::string& text) {
  std::string line = text.substr(0, text.find_last_not_of('\n') + 1);
  if (!text.starts_with("Traceback")) return line;
  line.erase(0, line.rfind('\n') + 1);
  const size_t place = text.rfind("File \"");
  return place == std::string::npos ? line
                                    : fmt::format("{} ({})", line, text.substr(place, text.find('\n', place) - place));
}

}  // namespace

ForgivingModel::ForgivingModel(std::shared_ptr<CostModel> model, std::function<void(const Diagnostic&)> tell)
    : model_(std::move(model)), tell_(std::move(tell)) {}

Status ForgivingModel::load(const std::string& path) { return model_->load(path); }
Status ForgivingModel::save(const std::string& path) { return model_->save(path); }

void ForgivingModel::give_up(const Diagnostic& error) {
  failed_ = true;
  tell_(resource_error("tune/cost-model", fmt::format("the search goes on without its cost model, which failed: {}",
                                                      in_one_line(error.message))));
}

Status ForgivingModel::update(const TuneContext& context, const std::vector<MeasureCandidate>& candidates,
                              const std::vector<RunnerResult>& results) {
  if (failed_) return Ok{};
  if (Status updated = model_->update(context, candidates, results); !updated.ok()) give_up(updated.error());
  return Ok{};
}

Result<std::vector<double>> ForgivingModel::predict(const TuneContext& context,
                                                    const std::vector<MeasureCandidate>& candidates) {
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
