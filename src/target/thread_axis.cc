#include "target/thread_axis.h"

namespace tilewright {

std::optional<ThreadAxis> ThreadAxis::parse(std::string_view tag) {
  if (tag == "vthread") return ThreadAxis{Level::kVirtual, -1};
  size_t dot = tag.find('.');
  if (dot == std::string_view::npos || tag.size() != dot + 2 || tag[dot + 1] < 'x' || tag[dot + 1] > 'z') {
    return std::nullopt;
  }
  int dimension = tag[dot + 1] - 'x';
  std::string_view level = tag.substr(0, dot);
  if (level == "blockIdx") return ThreadAxis{Level::kBlock, dimension};
  if (level == "threadIdx") return ThreadAxis{Level::kThread, dimension};
  if (level == "vthread") return ThreadAxis{Level::kVirtual, dimension};
  return std::nullopt;
}

}  // namespace tilewright
