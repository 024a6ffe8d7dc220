// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/ProductBody.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

bool addsByFma(func::FuncOp entry, scf::ForOp loop) {
  bool found = false;
  entry->walk([&](scf::ForOp each) {
    if (!loop || each == loop)
      found |= !each.getOps<math::FmaOp>().empty();
  });
  return found;
}

std::string elementAt(ir::MatrixAttr matrix, const std::string &name,
                      const std::string &row, const std::string &column) {
  std::string index;
  auto add = [&](std::string what, int64_t stride) {
    if (StringRef(what).contains(' '))
      what = "(" + what + ")";
    index += (index.empty() ? "" : " + ") + what;
    if (stride != 1)
      index += " * " + std::to_string(stride) + "LL";
  };
  if (matrix.getOffset() != 0)
    add(std::to_string(matrix.getOffset()) + "LL", 1);
  if (matrix.getBatch() > 1)
    add("batch", matrix.getBatchStride());
  add(row, matrix.getRowStride());
  add(column, matrix.getColumnStride());
  return name + "[" + index + "]";
}

std::string overlapRefusal(ir::MatrixAttr matrix, const std::string &name) {
  int64_t extent =
      (matrix.getRows() - 1) * matrix.getRowStride() + matrix.getColumns();
  bool overlap = matrix.getRowStride() < matrix.getColumns() ||
                 matrix.getOffset() < 0 ||
                 (matrix.getBatch() > 1 && matrix.getBatchStride() < extent);
  return overlap ? "rows of " + name + " overlap" : "";
}

} // namespace mgpu::kernels::cuda
