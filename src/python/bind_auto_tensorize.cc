// Bindings of auto-tensorization: matching blocks to tensor intrinsics.

#include "python/search_components.h"
#include "search/auto_tensorize.h"

namespace tilewright::python {
namespace {

nb::object loop_mapping(const SchedulePtr& sch, const PyBlock& block, const Ref<PrimFunc>& desc, bool allow_padding) {
  schedule::BlockRV rv = own(*sch, block, "loop_mapping");
  auto found = unwrap(search::loop_mapping(sch->schedule, rv, *desc, allow_padding));
  if (!found) return nb::none();
  nb::list loops, paddings;
  for (const auto& [loop, desc_loop] : found->loops) {
    loops.append(nb::make_tuple(make_handle(sch, loop.index), node_to_python(desc_loop)));
  }
  for (int64_t size : found->paddings) paddings.append(size);
  return nb::make_tuple(loops, found->paddings.empty() ? nb::object(nb::none()) : nb::object(paddings));
}

nb::object tile_with_tensor_intrin(const SchedulePtr& sch, const PyBlock& block, const std::string& intrin_name,
                                   bool allow_padding) {
  schedule::BlockRV rv = own(*sch, block, "tile_with_tensor_intrin");
  auto found = unwrap_in(*sch, search::tile_with_tensor_intrin(sch->schedule, rv, intrin_name, allow_padding));
  return found ? make_handle(sch, found->index) : nb::none();
}

nb::object layout_mapping(const SchedulePtr& sch, const PyBlock& block, const Ref<PrimFunc>& desc) {
  auto place = unwrap(sch->schedule.state().find(own(*sch, block, "layout_mapping")));
  auto found = search::layout_mapping(place, *desc);
  if (!found) return nb::none();
  nb::dict buffers, indices;
  for (const auto& [buffer, of_desc] : found->buffers) buffers[node_to_python(buffer)] = node_to_python(of_desc);
  for (const auto& [buffer, at] : found->indices) indices[node_to_python(buffer)] = nb::cast(at);
  return nb::make_tuple(node_to_python(found->map), buffers, indices, nb::cast(found->block_axes),
                        nb::cast(found->desc_axes));
}

}  // namespace

void bind_auto_tensorize(nb::module_& m) {
  m.def(
      "loop_mapping", &loop_mapping, "sch"_a, "block"_a, "desc"_a, "allow_padding"_a,
      "Return the loops around a block that match those of a description, and the padding of its axes; None if it does "
      "not match.",
      nb::sig("def loop_mapping(sch: Schedule, block: BlockRV, desc: PrimFunc, allow_padding: bool) -> "
              "tuple[list[tuple[LoopRV, For]], list[int] | None] | None"));
  m.def("tile_with_tensor_intrin", &tile_with_tensor_intrin, "sch"_a, "block"_a, "intrin_name"_a, "allow_padding"_a,
        "Split and reorder the loops of a block so that the innermost ones match an intrinsic. Return the outermost of "
        "these; None if the block does not match.",
        nb::sig("def tile_with_tensor_intrin(sch: Schedule, block: BlockRV, intrin_name: str, allow_padding: bool) -> "
                "LoopRV | None"));
  m.def(
      "layout_mapping", &layout_mapping, "sch"_a, "block"_a, "desc"_a,
      "Return how the axes of a block map to those of a description; None if it computes something else.",
      nb::sig("def layout_mapping(sch: Schedule, block: BlockRV, desc: PrimFunc) -> "
              "tuple[IndexMap, dict[Buffer, Buffer], dict[Buffer, list[Expr]], list[IterVar], list[IterVar]] | None"));
}

}  // namespace tilewright::python
