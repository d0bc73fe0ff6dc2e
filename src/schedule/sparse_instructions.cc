#include "schedule/sparse_instructions.h"

#include "schedule/instructions.h"

namespace tilewright::schedule {
namespace {

template <class I>
constexpr bool kIsOnIterations = requires { I::kOnIterations; };

}  // namespace

bool is_on_iterations(const KindInfo& kind) {
#define X(Kind, method) \
  if (kind.kind == #Kind) return kIsOnIterations<Kind>;
#include "schedule/instructions.def"
#undef X
  return false;
}

}  // namespace tilewright::schedule
