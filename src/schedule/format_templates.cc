#include "schedule/format_templates.h"

#include "schedule/primitive.h"

namespace tilewright::schedule {
namespace {

/// Never destroyed: what belongs to Python must not outlive the interpreter.
FormatTemplates& registered() {
  static auto* templates = new FormatTemplates;
  return *templates;
}

}  // namespace

void set_format_templates(FormatTemplates templates) { registered() = std::move(templates); }

Result<FormatDecomposition> decompose_by_template(const FormatRequest& request) {
  if (registered()) return registered()(request);
  return refuse("decompose_format/P2", "no formats are registered", {}, "import tilewright, which registers them");
}

}  // namespace tilewright::schedule
