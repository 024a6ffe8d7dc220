// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Remarks about layouts, and about what it costs to change them.
#include "dialect/conversion/spmd/Partition.h"
#include "dialect/mgpu/Diagnostics.h"

#include "mlir/IR/Remarks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mgpu::conversion {

using namespace mlir;

void Partition::reportLayouts() {
  auto report = [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (type && type.hasStaticShape())
      reportLayout(value, layouts.of(value));
  };
  for (BlockArgument argument : function.getArguments())
    report(argument);
  function.walk([&](Operation *op) {
    if (!op->hasTrait<OpTrait::ConstantLike>() && !isa<tensor::EmptyOp>(op))
      for (Value result : op->getResults())
        report(result);
  });
}

/// The axes that several ways give to different factors.
static Axes disputedAxes(ArrayRef<Layouts::Way> ways) {
  Axes axes;
  for (const Layouts::Way &way : ways)
    for (auto [cut, taken] : llvm::zip(way.cuts, ways.front().cuts))
      for (int64_t axis : cut.axes)
        if (!llvm::is_contained(taken.axes, axis) &&
            !llvm::is_contained(axes, axis))
          axes.push_back(axis);
  llvm::sort(axes);
  return axes;
}

void Partition::reportConflict(ArrayRef<Layouts::Way> ways) {
  const Axes axes = disputedAxes(ways);
  if (axes.empty())
    return;
  emitReport(current->getLoc(), [&] {
    std::vector<int64_t> others;
    for (const Layouts::Way &way : ways.drop_front())
      others.push_back(way.bytes);
    return fmt::format("conflict over axes {} in '{}' at {}: cut in the way "
                       "of {} bytes; others have {}",
                       axes, current->getName().getStringRef().str(),
                       ir::describeLocation(current->getLoc()),
                       ways.front().bytes, fmt::join(others, " or "));
  });
}

/// The collectives and copies of `steps`, as "all_gather, move".
static std::string exchangesOf(const ReshardSteps &steps) {
  static constexpr const char *names[] = {"slice",      "all_to_all",
                                          "all_gather", "reduce_scatter",
                                          "all_reduce", "move"};
  std::vector<std::string> made;
  for (const ReshardStep &step : steps)
    if (step.kind != ReshardStep::Slice)
      made.push_back(names[step.kind]);
  return fmt::format("{}", fmt::join(made, ", "));
}

/// The predicted time of the steps, and that of the steps of the fewest bytes.
static std::string timeOf(const Reshards &reshards,
                          const ReshardRequest &request,
                          const ReshardSteps &steps) {
  if (reshards.countsBytes())
    return "";
  std::string text =
      fmt::format(", {:.3f} us", reshards.costOf(request, steps));
  const ReshardSteps fewest = Reshards().find(request);
  if (exchangesOf(fewest) != exchangesOf(steps))
    text += fmt::format(" ({} of {} bytes: {:.3f} us)", exchangesOf(fewest),
                        bytesReceived(request, fewest),
                        reshards.costOf(request, fewest));
  return text;
}

void Partition::reportChange(Value value, const ReshardRequest &request,
                             const ReshardSteps &steps) {
  if (llvm::all_of(steps, [](const ReshardStep &step) {
        return step.kind == ReshardStep::Slice;
      }))
    return;
  emitReport(value.getLoc(), [&] {
    std::string cause =
        request.partial.empty()
            ? fmt::format("from {} to {}", splitOf(request.from),
                          splitOf(request.to))
            : fmt::format("partial along axes {}", request.partial);
    return fmt::format("{} of {}: {} bytes to each device{}, {}, for '{}' at "
                       "{}",
                       exchangesOf(steps), placeOf(value),
                       bytesReceived(request, steps),
                       timeOf(reshards, request, steps), cause,
                       current->getName().getStringRef().str(),
                       ir::describeLocation(current->getLoc()));
  });
}

using namespace mlir;

void emitReport(Location loc, function_ref<std::string()> text) {
  if (auto remark =
          remark::analysis(loc, remark::RemarkOpts::name("layout").category(
                                    "spmd-partition-tensors")))
    remark << StringRef(text());
}

template <typename T>
static std::string textOf(const T &value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

/// The lists of a layout, as `[[0], []]`.
static std::string listsOf(ArrayRef<DenseI64ArrayAttr> lists) {
  std::vector<llvm::ArrayRef<int64_t>> all(lists.begin(), lists.end());
  return fmt::format("{}", all);
}

std::string splitOf(spmd::LayoutAttr layout) {
  std::string text = listsOf(layout.getSplit());
  if (!layout.getOffsets().empty())
    text += " at " + listsOf(layout.getOffsets());
  if (!layout.getHalos().empty())
    text += " with halos " + listsOf(layout.getHalos());
  return text;
}

std::string placeOf(Value value) {
  std::string name = ir::nameOf(value.getLoc(), "");
  return (name.empty() ? "the value" : "%" + name) + " at " +
         ir::describeLocation(value.getLoc());
}

void reportLayout(Value value, spmd::LayoutAttr layout) {
  emitReport(value.getLoc(), [&] {
    auto type = cast<RankedTensorType>(value.getType());
    return fmt::format("{}: {} split {}, {} bytes on a device", placeOf(value),
                       textOf(Type(type)), splitOf(layout),
                       bytesOf(type, layout.shardShape(type.getShape(), 0)));
  });
}

} // namespace mgpu::conversion
