// Declarations of a block about the values of a buffer that it reads and does not write.
//
//   with T.block("spmm"):
//     T.assume_buffer_domain(indptr, [0, nnz + 1], order="nondecreasing")
//     T.assume_buffer_domain(indices, [0, n], order="increasing", segments=indptr)
//     T.assume_buffer_domain(columns, [0, n], order="increasing", segments=3)
//
// A declaration holds for every element while the block runs. Analyses assume it (arith/analyzer.h), and the
// interpreter checks it when the block starts. It is an annotation of the block, so equality, JSON and buffer
// replacement need no special code.
//
//   T.assume_disjoint(rows_0, rows_1, rows_2)       no value occurs in two of these buffers
//
// is a separate annotation, about one-dimensional buffers whose domains the block declares.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/stmt.h"

namespace tilewright {

/// The key of the annotation: a List with one List for each declaration, which holds the whole buffer as a
/// BufferRegion, the ends of the domain, the order, and perhaps the segments: a BufferRegion, or the length of each.
/// For offsets, a List with the maximum length of a segment takes that place.
inline constexpr std::string_view kBufferDomains = "buffer_domains";

/// kDistinct: no value occurs twice; the order is arbitrary. kOffsets: nondecreasing, from the least value of the
/// domain to the greatest, so that each position that they count belongs to one of them.
enum class ValueOrder : uint8_t { kNone, kNondecreasing, kIncreasing, kDistinct, kOffsets };

struct BufferDomain {
  Ref<Buffer> buffer;
  Expr min, end;  ///< every value v satisfies min <= v < end
  /// The order of the values of a one-dimensional buffer.
  ValueOrder order = ValueOrder::kNone;
  /// If not null, the order holds within each segment [segments[s], segments[s + 1]) only.
  Ref<Buffer> segments = {};
  /// If not null, the order holds within each segment of this many values only; the last one may be shorter.
  Expr segment_length = {};
  /// If not null, the values are offsets of segments, none of which has more elements than this.
  Expr longest = {};

  bool has_segments() const { return segments.defined() || segment_length.defined(); }
};
/// Whether both declare the same of a buffer.
bool is_same(const BufferDomain& a, const BufferDomain& b);

/// Returns the declarations of the block itself; none if the annotation is malformed.
std::vector<BufferDomain> buffer_domains(const Block& block);
/// Whether the annotation exists and is well formed.
bool declares_domains(const Annotations& annotations);
/// The key of the annotation: a List with one List of whole buffers, as BufferRegions, for each group of disjoint ones.
inline constexpr std::string_view kDisjointBuffers = "disjoint_buffers";
using DisjointBuffers = std::vector<Ref<Buffer>>;
/// Returns the groups that the block itself declares; none if the annotation is malformed.
std::vector<DisjointBuffers> disjoint_buffers(const Block& block);
/// Whether the annotation exists and is well formed.
bool declares_disjoint(const Annotations& annotations);
/// Adds a group to the annotations of a block.
void declare(Annotations& annotations, const DisjointBuffers& buffers);

/// A fault in the declarations of a block: a malformed one, or one about a buffer that the block writes.
struct DomainFault {
  std::string message, hint;
  NodeRef where;
};
std::optional<DomainFault> find_fault(const Ref<Block>& block);
/// Adds a declaration to the annotations of a block.
void declare(Annotations& annotations, const BufferDomain& domain);

/// "", "nondecreasing", "increasing", "distinct", "offsets".
std::string_view order_name(ValueOrder order);
/// False where no order has that name.
bool parse_order(std::string_view name, ValueOrder* order);

}  // namespace tilewright
