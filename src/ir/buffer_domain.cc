#include "ir/buffer_domain.h"

#include <algorithm>
#include <array>
#include <optional>

#include "ir/build.h"
#include "ir/regions.h"
#include "ir/traverse.h"

namespace tilewright {
namespace {

constexpr std::array kOrders{ValueOrder::kNone, ValueOrder::kNondecreasing, ValueOrder::kIncreasing};

std::optional<BufferDomain> read(const NodeRef& node) {
  const List* list = node.as<List>();
  if (!list || list->items.size() < 4 || list->items.size() > 5) return std::nullopt;
  const BufferRegion* region = list->items[0].as<BufferRegion>();
  const StringImm* order = list->items[3].as<StringImm>();
  const bool are_ends = list->items[1].sort() == Sort::kExpr && list->items[2].sort() == Sort::kExpr;
  BufferDomain domain;
  if (!region || !are_ends || !order || !parse_order(order->value, &domain.order)) return std::nullopt;
  domain.buffer = region->buffer;
  domain.min = Expr(list->items[1]);
  domain.end = Expr(list->items[2]);
  if (list->items.size() == 5) {
    const BufferRegion* segments = list->items[4].as<BufferRegion>();
    if (!segments) return std::nullopt;
    domain.segments = segments->buffer;
  }
  return domain;
}

}  // namespace

std::vector<BufferDomain> buffer_domains(const Block& block) {
  std::vector<BufferDomain> domains;
  if (!declares_domains(block.annotations)) return domains;
  for (const NodeRef& item : block.annotations.get(kBufferDomains).as<List>()->items) domains.push_back(*read(item));
  return domains;
}

bool declares_domains(const Annotations& annotations) {
  if (annotations.empty()) return false;
  NodeRef value = annotations.get(kBufferDomains);
  const List* list = value.defined() ? value.as<List>() : nullptr;
  return list && std::all_of(list->items.begin(), list->items.end(),
                             [](const NodeRef& item) { return item.defined() && read(item).has_value(); });
}

std::optional<DomainFault> find_fault(const Ref<Block>& block) {
  if (!block->annotations.has(kBufferDomains)) return std::nullopt;
  const std::string name = "block '" + block->name_hint + "'";
  if (!declares_domains(block->annotations)) {
    return DomainFault{"annotation 'buffer_domains' of " + name + " is malformed",
                       "declare domains by T.assume_buffer_domain(buffer, [0, n])", block};
  }
  for (const BufferDomain& domain : buffer_domains(*block)) {
    NodeRef writer;
    auto look = [&](const NodeRef& at, const Ref<Buffer>& written) {
      if (written->data == domain.buffer->data) writer = at;
    };
    visit(
        block, [&](const Ref<BufferStore>& store) { look(store, store->buffer); },
        [&](const Ref<Block>& inner) {
          for (const Ref<BufferRegion>& region : inner->writes) look(inner, region->buffer);
        });
    if (!writer.defined()) continue;
    return DomainFault{name + " declares the values of '" + domain.buffer->name + "', which it writes",
                       "declare them in a block that only reads the buffer", writer};
  }
  return std::nullopt;
}

void declare(Annotations& annotations, const BufferDomain& domain) {
  std::vector<NodeRef> fields{whole_region(domain.buffer), domain.min, domain.end,
                              string_imm(std::string(order_name(domain.order)))};
  if (domain.segments.defined()) fields.push_back(whole_region(domain.segments));
  NodeRef known = annotations.get(kBufferDomains);
  List all;
  if (known.defined() && known.is<List>()) all = *known.as<List>();
  all.items.push_back(make<List>({std::move(fields)}));
  annotations.set(std::string(kBufferDomains), make<List>(std::move(all)));
}

std::string_view order_name(ValueOrder order) {
  switch (order) {
    case ValueOrder::kNondecreasing:
      return "nondecreasing";
    case ValueOrder::kIncreasing:
      return "increasing";
    default:
      return "";
  }
}

bool parse_order(std::string_view name, ValueOrder* order) {
  for (ValueOrder each : kOrders) {
    if (order_name(each) != name) continue;
    *order = each;
    return true;
  }
  return false;
}

}  // namespace tilewright
