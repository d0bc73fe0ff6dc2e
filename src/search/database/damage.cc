#include "search/database/damage.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "support/json_nesting.h"

namespace tilewright::search {
namespace {

/// Writing it checks that it is UTF-8, and writes U+FFFD for the rest.
std::string as_json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string readable(std::string text) {
  try {
    (void)nlohmann::json(text).dump();
    return text;
  } catch (const nlohmann::json::type_error&) {
    return nlohmann::json::parse(as_json_text(text)).get<std::string>();
  }
}

bool is_json(const std::string& text) { return !nests_too_deep(text) && nlohmann::json::accept(text); }

void mark_damage(Record& record, std::string_view unread) {
  if (record.outcome == kDamaged) return;
  std::string damage;
  const auto note = [&](std::string_view name, const char* what) {
    if (damage.empty()) damage = fmt::format("its {} {}", name, what);
  };
  if (!unread.empty()) note(unread, "cannot be read");
  const std::pair<const char*, std::string*> texts[] = {{"target", &record.target},
                                                        {"trace", &record.trace},
                                                        {"list of decisions", &record.decisions},
                                                        {"outcome", &record.outcome},
                                                        {"verification", &record.verification},
                                                        {"time of its making", &record.created}};
  for (const auto& [name, text] : texts) {
    std::string clean = readable(*text);
    if (clean == *text) continue;
    note(name, "is not valid UTF-8");
    *text = std::move(clean);
  }
  const auto must_be_json = [&](const char* name, std::string& text) {
    if (text.empty() || is_json(text)) return;
    note(name, "is not valid JSON");
    text.clear();
  };
  must_be_json("trace", record.trace);
  // Older versions wrote NaN and infinity, which JSON does not have, for candidates with wrong results.
  for (const std::string number : {": nan", ": -nan", ": inf"}) {
    const size_t at = record.verification.find(number);
    if (at != std::string::npos) record.verification.replace(at, number.size(), ": null");
  }
  must_be_json("verification", record.verification);
  // Many records share these, and none of them is worse for it.
  for (std::string* text : {&record.host, &record.versions}) {
    if (!is_json(*text)) text->clear();
  }
  record.error = readable(record.error);  // messages quote what kernels wrote
  if (damage.empty()) return;
  record.outcome = kDamaged;
  record.error = std::move(damage);
}

}  // namespace tilewright::search
