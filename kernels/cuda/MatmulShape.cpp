// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/MatmulShape.h"

#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/ProductBody.h"
#include "kernels/cuda/ProductForms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

static std::optional<MatmulOperand> operandOf(func::FuncOp entry,
                                              int64_t position) {
  if (position < 0 || position >= entry.getNumArguments())
    return std::nullopt;
  auto type = dyn_cast<MemRefType>(entry.getArgumentTypes()[position]);
  SmallVector<int64_t> strides;
  MatmulOperand matrix;
  if (!type || !type.hasStaticShape() ||
      (type.getRank() != 2 && type.getRank() != 3) ||
      failed(type.getStridesAndOffset(strides, matrix.offset)) ||
      llvm::is_contained(strides, ShapedType::kDynamic) ||
      ShapedType::isDynamic(matrix.offset))
    return std::nullopt;
  matrix.position = unsigned(position);
  matrix.element = type.getElementType();
  unsigned last = unsigned(type.getRank()) - 1;
  matrix.rows = type.getDimSize(last - 1);
  matrix.columns = type.getDimSize(last);
  matrix.rowStride = strides[last - 1];
  matrix.columnStride = strides[last];
  if (last == 2) {
    matrix.batch = type.getDimSize(0);
    matrix.batchStride = strides[0];
  }
  return matrix;
}

/// C of a product whose body has more than it: no argument.
static MatmulOperand sumsOf(const MatmulOperand &a, const MatmulOperand &b,
                            Type element) {
  MatmulOperand sums;
  sums.position = UINT32_MAX;
  sums.rows = a.rows;
  sums.columns = b.columns;
  sums.batch = a.batch;
  sums.element = element;
  return sums;
}

/// The argument that the sums go to, begun with 0, where the body does nothing
/// else.
static std::optional<int64_t> overwritten(func::FuncOp entry, scf::ForOp loop) {
  if (!matchPattern(loop.getInitArgs()[0], m_PosZeroFloat()) ||
      !loop.getResult(0).hasOneUse())
    return std::nullopt;
  auto store = dyn_cast<memref::StoreOp>(*loop.getResult(0).user_begin());
  auto argument =
      store ? dyn_cast<BlockArgument>(store.getMemRef()) : BlockArgument();
  if (!argument || argument.getOwner() != &entry.getBody().front())
    return std::nullopt;
  size_t axis = store.getIndices().size();
  for (Value index : store.getIndices()) {
    Operation *id = index.getDefiningOp();
    auto is = id ? id->getAttrOfType<IntegerAttr>("mgpu.axis") : IntegerAttr();
    if (!is || is.getInt() != int64_t(--axis))
      return std::nullopt;
  }
  const bool isAlone = !entry
                            .walk([&](memref::StoreOp other) {
                              return other == store ? WalkResult::advance()
                                                    : WalkResult::interrupt();
                            })
                            .wasInterrupted();
  return isAlone ? std::optional(int64_t(argument.getArgNumber()))
                 : std::nullopt;
}

std::optional<MatmulShape> matmulShapeOf(ModuleOp kernel) {
  auto entry = kernel.lookupSymbol<func::FuncOp>("entry");
  if (!entry || entry.isDeclaration())
    return std::nullopt;
  auto positions = entry->getAttrOfType<DenseI64ArrayAttr>("mgpu.matmul");
  scf::ForOp loop = productLoop(entry);
  if (!positions || positions.size() != (loop ? 2 : 3) ||
      (!loop && entry.getNumArguments() != 3) || positions[0] == positions[1])
    return std::nullopt;
  auto a = operandOf(entry, positions[0]), b = operandOf(entry, positions[1]);
  if (!a || !b || (loop && !splitProduct(loop)))
    return std::nullopt;
  if (entry->hasAttr("mgpu.b_turned"))
    b = b->turned();
  std::optional<MatmulOperand> c;
  auto whole = loop ? overwritten(entry, loop) : std::nullopt;
  if (whole && *whole != positions[0] && *whole != positions[1])
    c = operandOf(entry, *whole);
  const bool overwrites = c.has_value();
  if (loop && !c)
    c = sumsOf(*a, *b, loop.getResult(0).getType());
  else if (!loop && positions[0] != positions[2] &&
           positions[1] != positions[2])
    c = operandOf(entry, positions[2]);
  if (!c)
    return std::nullopt;
  MatmulShape product{entry, loop, overwrites, *a, *b, *c};
  // So that every index of an element is an int.
  constexpr int64_t most = 1 << 30;
  for (const MatmulOperand *each : {&*a, &*b, &*c})
    if (each->batch != c->batch || each->rows > most || each->columns > most)
      return std::nullopt;
  if (a->rows != c->rows || b->columns != c->columns || a->columns != b->rows ||
      product.m() < 1 || product.n() < 1 || product.k() < 1)
    return std::nullopt;
  return product;
}

planner::Product MatmulShape::facts() const {
  return {double(m()),
          double(n()),
          double(k()),
          double(c.batch),
          *libraryType(a.element),
          *libraryType(c.element),
          bool(loop),
          isTurned()};
}

bool MatmulShape::addsByFma() const {
  bool found = false;
  entry->walk([&](scf::ForOp each) {
    if (!loop || each == loop)
      found |= !each.getOps<math::FmaOp>().empty();
  });
  return found;
}

MatmulOperand MatmulOperand::turned() const {
  MatmulOperand other = *this;
  std::swap(other.rows, other.columns);
  std::swap(other.rowStride, other.columnStride);
  return other;
}

std::string MatmulOperand::at(const std::string &name, const std::string &row,
                              const std::string &column) const {
  std::string index;
  auto add = [&](std::string what, int64_t stride) {
    if (StringRef(what).contains(' '))
      what = "(" + what + ")";
    index += (index.empty() ? "" : " + ") + what;
    if (stride != 1)
      index += " * " + std::to_string(stride) + "LL";
  };
  if (offset != 0)
    add(std::to_string(offset) + "LL", 1);
  if (batch > 1)
    add("batch", batchStride);
  add(row, rowStride);
  add(column, columnStride);
  return name + "[" + index + "]";
}

std::string MatmulOperand::overlapRefusal(const std::string &name) const {
  int64_t extent = (rows - 1) * rowStride + columns;
  bool overlap =
      rowStride < columns || offset < 0 || (batch > 1 && batchStride < extent);
  return overlap ? "rows of " + name + " overlap" : "";
}

} // namespace mgpu::kernels::cuda
