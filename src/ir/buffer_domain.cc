#include "ir/buffer_domain.h"

#include <array>
#include <optional>

#include "ir/build.h"
#include "ir/regions.h"
#include "ir/structural.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright {
namespace {

constexpr std::array kOrders{ValueOrder::kNone, ValueOrder::kNondecreasing, ValueOrder::kIncreasing,
                             ValueOrder::kDistinct, ValueOrder::kOffsets};

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
    const NodeRef& segments = list->items[4];
    if (const BufferRegion* offsets = segments.as<BufferRegion>()) {
      domain.segments = offsets->buffer;
    } else if (segments.sort() == Sort::kExpr) {
      domain.segment_length = Expr(segments);
    } else if (const List* longest = segments.as<List>(); longest && longest->items.size() == 1) {
      if (longest->items[0].sort() != Sort::kExpr) return std::nullopt;
      domain.longest = Expr(longest->items[0]);
    } else {
      return std::nullopt;
    }
  }
  return domain;
}

std::optional<DisjointBuffers> read_group(const NodeRef& node) {
  const List* list = node.as<List>();
  if (!list || list->items.size() < 2) return std::nullopt;
  DisjointBuffers group;
  for (const NodeRef& item : list->items) {
    const BufferRegion* region = item.defined() ? item.as<BufferRegion>() : nullptr;
    if (!region) return std::nullopt;
    group.push_back(region->buffer);
  }
  return group;
}

void append(Annotations& annotations, std::string_view key, std::vector<NodeRef> fields) {
  NodeRef known = annotations.get(key);
  List all;
  if (known.defined() && known.is<List>()) all = *known.as<List>();
  all.items.push_back(make<List>({std::move(fields)}));
  annotations.set(std::string(key), make(std::move(all)));
}

/// The first statement that writes the buffer, or null.
NodeRef writer_of(const Ref<Block>& block, const Ref<Buffer>& buffer) {
  NodeRef writer;
  auto look = [&](const NodeRef& at, const Ref<Buffer>& written) {
    if (written->data == buffer->data) writer = at;
  };
  visit(
      block, [&](const Ref<BufferStore>& store) { look(store, store->buffer); },
      [&](const Ref<Block>& inner) {
        for (const Ref<BufferRegion>& region : inner->writes) look(inner, region->buffer);
      });
  return writer;
}

std::optional<DomainFault> find_fault_of_groups(const Ref<Block>& block) {
  if (!block->annotations.has(kDisjointBuffers)) return std::nullopt;
  const std::string name = "block '" + block->name_hint + "'";
  if (!declares_disjoint(block->annotations)) {
    return DomainFault{"annotation 'disjoint_buffers' of " + name + " is malformed",
                       "declare buffers without common values by T.assume_disjoint(rows_0, rows_1)", block};
  }
  const std::vector<BufferDomain> domains = buffer_domains(*block);
  for (const DisjointBuffers& group : disjoint_buffers(*block)) {
    for (const Ref<Buffer>& buffer : group) {
      const bool has_domain = any_of(domains, [&](const BufferDomain& domain) { return domain.buffer == buffer; });
      if (has_domain && buffer->shape.size() == 1) continue;
      return DomainFault{name + " declares that '" + buffer->name + "' is disjoint from other buffers, but " +
                             (has_domain ? "it has several dimensions" : "not its domain"),
                         "declare T.assume_buffer_domain(buffer, [0, n]) of each of them, which have one dimension",
                         block};
    }
  }
  return std::nullopt;
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
  return list && all_of(list->items, [](const NodeRef& item) { return item.defined() && read(item).has_value(); });
}

std::vector<DisjointBuffers> disjoint_buffers(const Block& block) {
  std::vector<DisjointBuffers> groups;
  if (!declares_disjoint(block.annotations)) return groups;
  for (const NodeRef& item : block.annotations.get(kDisjointBuffers).as<List>()->items) {
    groups.push_back(*read_group(item));
  }
  return groups;
}

bool declares_disjoint(const Annotations& annotations) {
  if (annotations.empty()) return false;
  NodeRef value = annotations.get(kDisjointBuffers);
  const List* list = value.defined() ? value.as<List>() : nullptr;
  return list &&
         all_of(list->items, [](const NodeRef& item) { return item.defined() && read_group(item).has_value(); });
}

std::optional<DomainFault> find_fault(const Ref<Block>& block) {
  if (!block->annotations.has(kBufferDomains)) return find_fault_of_groups(block);
  const std::string name = "block '" + block->name_hint + "'";
  if (!declares_domains(block->annotations)) {
    return DomainFault{"annotation 'buffer_domains' of " + name + " is malformed",
                       "declare domains by T.assume_buffer_domain(buffer, [0, n])", block};
  }
  for (const BufferDomain& domain : buffer_domains(*block)) {
    const NodeRef writer = writer_of(block, domain.buffer);
    if (!writer.defined()) continue;
    return DomainFault{name + " declares the values of '" + domain.buffer->name + "', which it writes",
                       "declare them in a block that only reads the buffer", writer};
  }
  return find_fault_of_groups(block);
}

void declare(Annotations& annotations, const BufferDomain& domain) {
  std::vector<NodeRef> fields{whole_region(domain.buffer), domain.min, domain.end,
                              string_imm(std::string(order_name(domain.order)))};
  if (domain.segments.defined()) fields.push_back(whole_region(domain.segments));
  if (domain.segment_length.defined()) fields.push_back(domain.segment_length);
  if (domain.longest.defined()) fields.push_back(make<List>({{domain.longest}}));
  append(annotations, kBufferDomains, std::move(fields));
}

void declare(Annotations& annotations, const DisjointBuffers& buffers) {
  std::vector<NodeRef> fields;
  for (const Ref<Buffer>& buffer : buffers) fields.push_back(whole_region(buffer));
  append(annotations, kDisjointBuffers, std::move(fields));
}

bool is_same(const BufferDomain& a, const BufferDomain& b) {
  auto equal = [](const Expr& x, const Expr& y) {
    return x.defined() == y.defined() && (!x.defined() || structural_equal(x, y));
  };
  return a.buffer == b.buffer && a.order == b.order && a.segments == b.segments &&
         equal(a.segment_length, b.segment_length) && equal(a.longest, b.longest) && equal(a.min, b.min) &&
         equal(a.end, b.end);
}

std::string_view order_name(ValueOrder order) {
  switch (order) {
    case ValueOrder::kNondecreasing:
      return "nondecreasing";
    case ValueOrder::kIncreasing:
      return "increasing";
    case ValueOrder::kDistinct:
      return "distinct";
    case ValueOrder::kOffsets:
      return "offsets";
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
