#include "lower/gpu/permuted_layout.h"

#include <unordered_map>

#include "ir/build.h"
#include "ir/pointer_uses.h"
#include "ir/refuse_at.h"
#include "ir/traverse.h"
#include "ir/warp_steps.h"
#include "lower/gpu/kernel.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

constexpr const char* kPermutedLayout = "permuted_layout";
constexpr int64_t kChunkBytes = 16;

bool is_permuted(const Block& block) {
  const NodeRef value = block.annotations.get(kPermutedLayout);
  if (const StringImm* text = value.as<StringImm>()) return !text->value.empty();
  return value.defined() && value.sort() == Sort::kExpr && const_int(Expr(value)).value_or(0) != 0;
}

/// A buffer by rows.
struct RowLayout {
  Ref<Buffer> buffer;
  int64_t chunk = 0;   ///< elements in 16 bytes
  int64_t chunks = 0;  ///< number of chunks that a row permutes: 8, 4 or 2
  int64_t columns = 0;

  Expr column(const Expr& row, const Expr& column) const {
    const Expr number = floordiv(floormod(row, i32(8)), i32(8 / chunks));
    const Expr moved = call(DataType::int_(32), "tir.bitwise_xor", {floordiv(column, i32(chunk)), number});
    return moved * chunk + floormod(column, i32(chunk));
  }
};

class Permuter {
 public:
  explicit Permuter(PassContext& context) : context_(context) {}

  Result<Stmt> run(const Stmt& body) {
    find(body);
    if (layouts_.empty()) return body;
    Stmt result = rewrite(
        body,
        [&](const Ref<BufferLoad>& load, Rewriter& r) -> Expr {
          Ref<BufferLoad> inner = r.descend(load);
          const RowLayout* layout = of(load->buffer->data);
          if (!layout) return inner;
          return make<BufferLoad>({load->buffer, moved(*layout, load->buffer, inner->indices, load), inner->predicate},
                                  load.span());
        },
        [&](const Ref<BufferStore>& store, Rewriter& r) -> Stmt {
          BufferStore copy = *r.descend(store);
          const RowLayout* layout = of(store->buffer->data);
          if (layout) copy.indices = moved(*layout, store->buffer, copy.indices, store);
          return make(std::move(copy), store.span());
        },
        [&](const Ref<Call>& call, Rewriter& r) -> Expr { return on_call(call, r); });
    if (error_) return *error_;
    return result;
  }

 private:
  const RowLayout* of(const NodeRef& data) const { return find_value(layouts_, data); }

  void fail(const NodeRef& node, const std::string& name, const std::string& what) {
    if (error_) return;
    error_ =
        refuse_at(node, "lower/permuted-layout",
                  "a block asks for a permuted layout of shared memory '" + name + "', and " + what,
                  "load its tiles by ldmatrix or element by element, or remove the annotation \"permuted_layout\"");
  }

  /// The shared memory that blocks with the annotation use.
  void find(const Stmt& body) {
    std::vector<Ref<Buffer>> used;
    std::unordered_set<NodeRef> pointers;
    visit(body, [&](const Ref<Block>& block) {
      if (is_permuted(*block)) {
        visit(block, on<BufferLoad, BufferStore>([&](const auto& access) { pointers.insert(access->buffer->data); }),
              [&](const Ref<Call>& call) {
                if (auto memory = Fragments::memory_of(call)) pointers.insert(memory->data);
              });
      }
    });
    visit(body, [&](const Ref<Block>& block) {
      for (const Ref<Buffer>& buffer : block->alloc_buffers) {
        if (pointers.contains(buffer->data) && is_shared_scope(buffer->scope())) note(buffer, block);
      }
    });
  }

  void note(const Ref<Buffer>& buffer, const Ref<Block>& block) {
    const size_t dims = buffer->shape.size();
    auto columns = dims < 2 ? std::nullopt : const_int(buffer->shape.back());
    const int64_t bytes = buffer->dtype.bytes(), row = columns.value_or(0) * bytes;
    if (!buffer->dtype.is_scalar() || row == 0 || row % 32 != 0 || kChunkBytes % bytes != 0) {
      context_.notes.push_back({"lower/plain-layout", context_.function,
                                "a block asks for a permuted layout of '" + buffer->name +
                                    "', which stays as it is: its rows are not a multiple of 32 bytes long",
                                block.span()});
      return;
    }
    if (!buffer->strides.empty() && !is_const_int(buffer->strides[dims - 2], *columns)) return;  // padded
    layouts_[buffer->data] = {buffer, kChunkBytes / bytes, row % 128 == 0 ? 8 : row % 64 == 0 ? 4 : 2, *columns};
  }

  std::vector<Expr> moved(const RowLayout& layout, const Ref<Buffer>& buffer, std::vector<Expr> indices,
                          const NodeRef& node) {
    const bool is_same = buffer == layout.buffer && indices.size() == buffer->shape.size() &&
                         all_of(indices, [](const Expr& e) { return e.dtype().is_scalar(); });
    if (!is_same) {
      fail(node, layout.buffer->name, "another view of it is accessed");
      return indices;
    }
    const DataType wide = DataType::int_(32);
    Expr row = i32(0);
    for (size_t d = 0; d + 1 < indices.size(); ++d) row = row * cast(wide, buffer->shape[d]) + cast(wide, indices[d]);
    indices.back() = cast(indices.back().dtype(), layout.column(row, cast(wide, indices.back())));
    return indices;
  }

  Expr on_call(const Ref<Call>& call, Rewriter& r) {
    if (auto load = WarpLoad::of(call); load && !load->by_elements) {
      const RowLayout* layout = of(load->from.data);
      if (!layout) return r.descend(call);
      const DataType wide = DataType::int_(32);
      const Expr offset = cast(wide, load->from.offset), place = offset + cast(wide, load->place);
      const Expr row = floordiv(place, i32(layout->columns)), column = floormod(place, i32(layout->columns));
      Call copy = *call;
      copy.args[6] = row * layout->columns + layout->column(row, column) - offset;
      return make(std::move(copy), call.span());
    }
    const BufferLoad* element = addressed_element(call);
    auto memory = Fragments::memory_of(call);
    const RowLayout* layout = element ? of(element->buffer->data) : memory ? of(memory->data) : nullptr;
    if (layout) fail(call, layout->buffer->name, "a pointer to it is passed on");
    return r.descend(call);
  }

  PassContext& context_;
  std::unordered_map<NodeRef, RowLayout> layouts_;  ///< by data pointer
  std::optional<Diagnostic> error_;
};

}  // namespace

Result<Stmt> permute_layouts(const Stmt& body, PassContext& context) { return Permuter(context).run(body); }

}  // namespace tilewright::lower
