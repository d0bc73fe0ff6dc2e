#include "search/compile_request.h"

#include <nlohmann/json.hpp>

#include "ir/json.h"

namespace tilewright::search {

std::string CompileRequest::to_json() const {
  return nlohmann::json{{"target", target.json()}, {"final", effort == codegen::Effort::kFinal}}.dump();
}

Result<CompileRequest> CompileRequest::from_json(std::string_view text) {
  auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("target") || !json["target"].is_string()) {
    return internal_error("search/request", "a build was requested without a target");
  }
  TW_TRY(target, Target::parse(json["target"].get<std::string>()));
  return CompileRequest{target, json.value("final", false) ? codegen::Effort::kFinal : codegen::Effort::kTuning};
}

Result<std::string> compile_request(std::string_view module, std::string_view request) {
  TW_TRY(what, CompileRequest::from_json(request));
  TW_TRY(node, tilewright::from_json(module));
  if (!node.is<Module>()) return internal_error("search/request", "a build was requested of something not a module");
  codegen::CompileOptions options;
  options.effort = what.effort;
  TW_TRY(object, codegen::compile(node.borrow<Module>(), what.target, options));
  return std::move(object.bytes);
}

}  // namespace tilewright::search
