// Flip the signs of bytes once, where every load of a buffer flips them.
//
//   Before                                            After
//   for j in range(32):                               for i in T.parallel(...):
//     for k in range(128):                              A_flipped[...] = A[...] ^ 0x80...
//       ... int32(A[i * 512 + k * 4:... + 4])         for j in range(32):
//             ^ 0x80808080                              for k in range(128):
//                                                         ... int32(A_flipped[i * 512 + k * 4:... + 4])
//
// Instructions that multiply bytes without signs by bytes with signs take one operand flipped; in a tile of a product
// that is a step for each of its rows, beside two or three products. What is allocated in the function is flipped where
// it is stored, and an argument or a constant in a copy, if it is loaded often enough.
//
// Needs      vector code, flat buffers
// Ensures    the same values
// Placement  after vectorize_loops and form_dot_products, which flip; before loops are unrolled
#include <algorithm>
#include <unordered_map>

#include "ir/build.h"
#include "ir/traverse.h"
#include "lower/passes.h"
#include "lower/vector/lane_independence.h"
#include "lower/vector/vector_math.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

/// A copy of an argument or a constant pays if each of its bytes is loaded so many times.
constexpr double kLoadsPerByte = 8;
/// Bytes that one vector of the copy holds, and those that one iteration of its parallel loop copies.
constexpr int64_t kVector = 64, kChunk = 4096;

/// Uses of a buffer of bytes.
struct ByteBuffer {
  Ref<Buffer> view;          ///< the one through which it is accessed
  bool only_flipped = true;  ///< each load is combined with `mask`
  int64_t mask = 0;          ///< one byte
  double loads = 0;          ///< loads of bytes, in all iterations
  bool is_stored = false;
  bool is_given = false;  ///< an argument or a constant
  Ref<Buffer> flipped;    ///< the copy of an argument or a constant
};

/// The byte that a constant word repeats; 0 for anything else.
int64_t repeated_byte(const NodeRef& e) {
  const Broadcast* all = e.as<Broadcast>();
  auto word = const_int(all ? all->value : Expr(e));
  if (!word) return 0;
  const auto bits = static_cast<uint32_t>(*word);
  return bits == (bits & 0xff) * 0x01010101U ? static_cast<int64_t>(bits & 0xff) : 0;
}

/// The load in int32(A[...]) ^ constant, and the byte that the constant repeats; null for other calls.
const BufferLoad* flipped_load(const Call& call, int64_t& mask) {
  if (intrinsic_of(call) != Intrinsic::k_bitwise_xor || call.dtype.element() != DataType::int_(32)) return nullptr;
  const Call* word = call.args[0].as<Call>();
  if (!word || intrinsic_of(*word) != Intrinsic::k_reinterpret) return nullptr;
  const BufferLoad* load = word->args[0].as<BufferLoad>();
  mask = repeated_byte(call.args[1]);
  return load && mask != 0 && load->buffer->dtype == DataType::int_(8) && !load->predicate.defined() ? load : nullptr;
}

Expr flip(const Expr& value, int64_t mask) {
  Expr with = constant(DataType::int_(8), mask < 128 ? mask : mask - 256);
  const int lanes = value.dtype().lanes;
  return call(value.dtype(), "tir.bitwise_xor", {value, lanes > 1 ? broadcast(with, lanes) : with});
}

class Flipper {
 public:
  Flipper(const PrimFunc& func, PassContext& context) : private_(private_memory(func, context)) {
    for (const auto& [parameter, buffer] : func.buffer_map) given_.insert(buffer->data);
  }

  Stmt run(const Stmt& body) {
    collect(body);
    std::erase_if(buffers_, [](const auto& entry) {
      const ByteBuffer& bytes = entry.second;
      if (!bytes.only_flipped || !bytes.view.defined() || bytes.loads == 0) return true;
      if (!bytes.is_given) return false;
      auto size = const_int(bytes.view->shape[0]);
      return bytes.is_stored || (size && bytes.loads < kLoadsPerByte * static_cast<double>(*size));
    });
    return buffers_.empty() ? body : rewritten(body);
  }

 private:
  ByteBuffer* find(const Ref<Var>& data) { return find_value(buffers_, data); }

  void collect(const Stmt& body) {
    double trips = 1;
    visit(
        body,
        [&](const Ref<For>& loop, Visitor& v) {
          const double outer = trips;
          trips *= static_cast<double>(std::max<int64_t>(const_int(loop->extent).value_or(16), 0));
          v.descend(loop);
          trips = outer;
        },
        [&](const Ref<AllocateConst>& constant) { given_.insert(constant->buffer_var); },
        [&](const Ref<DeclBuffer>& decl) {
          const Ref<Buffer>& buffer = decl->buffer;
          if (buffer->dtype == DataType::int_(8) && private_.count(buffer->data)) {
            ByteBuffer& bytes = buffers_[buffer->data];
            bytes.only_flipped = bytes.only_flipped && !bytes.view.defined() && buffer->shape.size() == 1;
            bytes.view = buffer;
            bytes.is_given = given_.contains(buffer->data);
          }
        },
        [&](const Ref<BufferStore>& store) {
          if (ByteBuffer* bytes = find(store->buffer->data)) bytes->is_stored = true;
        },
        [&](const Ref<BufferLoad>& load) {
          if (ByteBuffer* bytes = find(load->buffer->data))
            bytes->only_flipped = false;  // flipped loads are found at the call around them
        },
        [&](const Ref<Call>& call, Visitor& v) {
          int64_t mask = 0;
          const BufferLoad* load = flipped_load(*call, mask);
          ByteBuffer* bytes = load ? find(load->buffer->data) : nullptr;
          if (bytes) {
            bytes->only_flipped = bytes->only_flipped && (bytes->mask == 0 || bytes->mask == mask);
            bytes->mask = mask;
            bytes->loads += trips * load->indices[0].dtype().lanes;
            return v(load->indices[0]);
          }
          // Whoever has the address may do anything.
          for (const NodeRef& argument : call->args) {
            const Ref<Var> pointer = argument.cast<Var>();
            if (ByteBuffer* reached = pointer.defined() ? find(pointer) : nullptr) reached->only_flipped = false;
          }
          v.descend(call);
        });
  }

  Stmt rewritten(const Stmt& body) {
    return rewrite(
        body,
        [&](const Ref<DeclBuffer>& decl, Rewriter& r) -> Stmt {
          ByteBuffer* bytes = find(decl->buffer->data);
          if (!bytes || !bytes->is_given) return r.descend(decl);
          const Buffer& before = *decl->buffer;
          bytes->flipped = decl_buffer(before.shape, before.dtype, before.name + "_flipped");
          Stmt inside = make<DeclBuffer>({bytes->flipped, seq({copy(*bytes), r(decl->body)})});
          inside = make<Allocate>({bytes->flipped->data, before.dtype, before.shape, bool_imm(true), inside, {}});
          return make<DeclBuffer>({decl->buffer, inside}, decl.span());
        },
        [&](const Ref<BufferStore>& store, Rewriter& r) -> Stmt {
          const ByteBuffer* bytes = find(store->buffer->data);
          Stmt after = r.descend(store);
          if (!bytes) return after;
          BufferStore flipped = *after.as<BufferStore>();
          flipped.value = flip(flipped.value, bytes->mask);
          return make(std::move(flipped), store.span());
        },
        [&](const Ref<Call>& call, Rewriter& r) -> Expr {
          int64_t mask = 0;
          const BufferLoad* load = flipped_load(*call, mask);
          const ByteBuffer* bytes = load ? find(load->buffer->data) : nullptr;
          if (!bytes) return r.descend(call);
          Expr flipped = make<BufferLoad>({bytes->is_given ? bytes->flipped : load->buffer, {r(load->indices[0])}, {}});
          return bits_as(call->dtype, std::move(flipped));
        });
  }

  /// Copies all bytes, flipped: chunks of vectors in parallel, then the vectors and the bytes that remain.
  static Stmt copy(const ByteBuffer& bytes) {
    const Expr size = bytes.view->shape[0];
    const DataType type = size.dtype();
    auto piece = [&](const Expr& at) { return store(bytes.flipped, flip(load(bytes.view, {at}), bytes.mask), {at}); };
    Ref<Var> chunk = var("chunk", type), vector = var("vector", type), rest = var("rest", type);
    Expr at = chunk * kChunk + vector * kVector;
    Stmt chunks = loop(vector, constant(type, kChunk / kVector), piece(ramp(at, one(type), kVector)));
    Expr whole = floordiv(size, constant(type, kChunk));
    chunks = loop(chunk, whole, chunks, ForKind::kParallel);
    Ref<Var> last = var("vector", type);
    Expr vectors = floordiv(size, constant(type, kVector)) - whole * (kChunk / kVector);
    Stmt behind = loop(last, vectors, piece(ramp(whole * kChunk + last * kVector, one(type), kVector)));
    Expr left = floormod(size, constant(type, kVector));
    return seq({chunks, behind, loop(rest, left, piece(size - left + rest))});
  }

  std::unordered_set<NodeRef> private_, given_;
  std::unordered_map<NodeRef, ByteBuffer> buffers_;
};

}  // namespace

PassResult flip_once(const Ref<PrimFunc>& func, PassContext& context) {
  return with_body(func, Flipper(*func, context).run(func->body));
}

}  // namespace tilewright::lower
