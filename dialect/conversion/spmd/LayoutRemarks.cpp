// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/spmd/LayoutRemarks.h"
#include "dialect/mgpu/Diagnostics.h"

#include "mlir/IR/Remarks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mgpu::conversion {

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
