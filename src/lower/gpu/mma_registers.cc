#include "lower/gpu/mma_registers.h"

#include <unordered_map>

#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/refuse_at.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "ir/warp_steps.h"
#include "lower/gpu/kernel.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

constexpr std::string_view kPrefix = "m16n8k8.matrix";

struct Matrix {
  Ref<Buffer> buffer, registers;
  char operand = 'C';
  int64_t rows = 0, columns = 0, count = 0;  ///< sizes of one matrix; registers of a lane for it

  int64_t tile_rows() const { return operand == 'A' ? 32 : operand == 'B' ? 8 : 16; }
  int64_t tile_columns() const { return operand == 'B' ? 32 : 8; }

  /// Returns the register of the element in the lane that holds it. The versions of a software pipeline follow one
  /// another.
  Expr place(const Expr& version, const Expr& row, const Expr& column) const {
    auto div = [](const Expr& e, int64_t by) { return floordiv(e, i32(by)); };
    auto mod = [](const Expr& e, int64_t by) { return floormod(e, i32(by)); };
    const int64_t held = tile_rows() * tile_columns() / kWarpLanes;
    const Expr tile = div(row, tile_rows()) * (columns / tile_columns()) + div(column, tile_columns());
    // In an 8 x 8 matrix, each lane has two adjacent elements: of a row, or of a column if the matrix is transposed.
    const bool is_transposed = operand == 'B';
    const Expr &along = is_transposed ? row : column, &across = is_transposed ? column : row;
    const Expr lane = mod(across, 8) * 4 + div(mod(along, 8), 2);
    const Expr matrix = div(is_transposed ? mod(column, 32) : mod(row, tile_rows()), 8);
    return version * (rows * columns) + lane * count + tile * held + matrix * 2 + mod(along, 2);
  }
};

class MatrixRegisters {
 public:
  Result<Stmt> run(const Stmt& body) {
    visit(body, [&](const Ref<DeclBuffer>& decl) {
      if (decl->buffer->scope().starts_with(kPrefix)) note(decl->buffer);
    });
    if (matrices_.empty() || error_) return error_ ? Result<Stmt>(*error_) : body;
    Stmt result = rewrite(
        body,
        [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
          const bool is_x = is_bound(*loop) && loop->thread_binding->thread_tag == "threadIdx.x";
          Ref<Var> outer = is_x ? std::exchange(lane_, Ref<Var>(loop->loop_var)) : lane_;
          Stmt inner = r.descend(loop);
          lane_ = outer;
          return inner;
        },
        [&](const Ref<Evaluate>& step, Rewriter& r) -> Stmt { return on_step(step, r); },
        [&](const Ref<Allocate>& allocate, Rewriter& r) -> Stmt {
          Allocate copy = *r.descend(allocate);
          if (const Matrix* matrix = of(allocate->buffer_var)) {
            copy.buffer_var = matrix->registers->data;
            copy.extents = matrix->registers->shape;
          }
          return make(std::move(copy), allocate.span());
        },
        [&](const Ref<DeclBuffer>& decl, Rewriter& r) -> Stmt {
          DeclBuffer copy = *r.descend(decl);
          if (const Matrix* matrix = of(decl->buffer->data)) copy.buffer = matrix->registers;
          return make(std::move(copy), decl.span());
        },
        [&](const Ref<BufferLoad>& load, Rewriter& r) -> Expr {
          Ref<BufferLoad> inner = r.descend(load);
          const Matrix* matrix = of(load->buffer->data);
          if (!matrix) return inner;
          return make<BufferLoad>({matrix->registers, place_of(*matrix, inner->indices), inner->predicate},
                                  load.span());
        },
        [&](const Ref<BufferStore>& store, Rewriter& r) -> Stmt {
          BufferStore copy = *r.descend(store);
          if (const Matrix* matrix = of(store->buffer->data)) {
            copy.indices = place_of(*matrix, copy.indices);
            copy.buffer = matrix->registers;
          }
          return make(std::move(copy), store.span());
        });
    if (error_) return *error_;
    return result;
  }

 private:
  const Matrix* of(const NodeRef& data) const { return find_value(matrices_, data); }

  void note(const Ref<Buffer>& buffer) {
    if (matrices_.contains(buffer->data)) return;
    Matrix matrix{.buffer = buffer, .registers = {}, .operand = buffer->scope()[kPrefix.size()]};
    int64_t size = 1;
    for (const Expr& extent : buffer->shape) size *= const_int(extent).value_or(0);
    const size_t dims = buffer->shape.size();
    int64_t below = 1;
    bool is_compact = true;
    for (size_t d = buffer->strides.size(); d-- > 0; below *= const_int(buffer->shape[d]).value_or(0)) {
      is_compact &= is_const_int(buffer->strides[d], below);
    }
    const bool is_matrix = dims >= 2 && size > 0 && is_compact;
    if (is_matrix) {
      matrix.rows = *const_int(buffer->shape[dims - 2]);
      matrix.columns = *const_int(buffer->shape.back());
    }
    if (!is_matrix || matrix.rows % matrix.tile_rows() != 0 || matrix.columns % matrix.tile_columns() != 0) {
      if (!error_) {
        error_ =
            refuse_at(buffer, "lower/mma-registers",
                      "buffer '" + buffer->name + "' of scope \"" + buffer->scope() + "\" is not a matrix of whole " +
                          std::to_string(matrix.tile_rows()) + " x " + std::to_string(matrix.tile_columns()) + " tiles",
                      "let a warp compute tiles of multiples of 32 x 32 elements");
      }
      return;
    }
    matrix.count = matrix.rows * matrix.columns / kWarpLanes;
    matrix.registers = decl_buffer({i32(size)}, buffer->dtype, buffer->name, "warp");
    matrices_.emplace(buffer->data, std::move(matrix));
  }

  std::vector<Expr> place_of(const Matrix& matrix, const std::vector<Expr>& indices) {
    const DataType wide = DataType::int_(32);
    Expr version = i32(0);
    for (size_t d = 0; d + 2 < indices.size(); ++d) {
      version = version * cast(wide, matrix.buffer->shape[d]) + cast(wide, indices[d]);
    }
    return {matrix.place(version, cast(wide, indices[indices.size() - 2]), cast(wide, indices.back()))};
  }

  /// Instructions name registers of the lane by number.
  Stmt on_step(const Ref<Evaluate>& step, Rewriter& r) {
    if (!is_warp_step(step->value)) return r.descend(step);
    Call call = *step->value.as<Call>();
    bool found = false;
    Ref<Var> lane = lane_.defined() ? lane_ : var("tx");
    for (size_t at : register_arguments(call)) {
      const Matrix* matrix = at + 1 < call.args.size() ? of(call.args[at]) : nullptr;
      if (!matrix) continue;
      found = true;
      call.args[at] = matrix->registers->data;
      call.args[at + 1] = cast(DataType::int_(32), lane) * matrix->count + cast(DataType::int_(32), call.arg(at + 1));
    }
    if (!found) return r.descend(step);
    Stmt s = make<Evaluate>({make(std::move(call), step->value.span())}, step.span());
    return lane_.defined() ? s : bound_loop(lane, i32(kWarpLanes), "threadIdx.x", std::move(s));
  }

  std::unordered_map<NodeRef, Matrix> matrices_;  ///< by data pointer
  Ref<Var> lane_;                                 ///< variable of the loop over lanes around; null: none
  std::optional<Diagnostic> error_;
};

}  // namespace

Result<Stmt> lower_mma_registers(const Stmt& body) { return MatrixRegisters().run(body); }

}  // namespace tilewright::lower
