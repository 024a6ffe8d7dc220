// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "facts/KernelProduct.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

namespace mgpu::facts {

using namespace mlir;

scf::ForOp productLoop(Region &body) {
  scf::ForOp found;
  body.walk([&](scf::ForOp loop) {
    if (ir::hasMark(loop, ir::Mark::ProductLoop))
      found = loop;
  });
  return found;
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
    if (--axis > 2 || !id || !ir::hasMark(id, ir::globalMarks[axis]))
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

ir::ProductAttr productOf(func::FuncOp entry, ir::ProductAttr of,
                          ArrayRef<int64_t> positions) {
  scf::ForOp loop = productLoop(entry.getBody());
  SmallVector<int64_t> all(positions);
  if (!of || all.size() != (loop ? 2 : 3) ||
      (!loop && entry.getNumArguments() != 3))
    return {};
  auto whole = loop ? overwritten(entry, loop) : std::nullopt;
  if (whole && !llvm::is_contained(all, *whole))
    all.push_back(*whole);
  SmallVector<ir::MatrixAttr> matrices;
  for (int64_t position : all)
    matrices.push_back(ir::matrixOf(entry, position));
  if (loop && matrices.size() == 3 && !matrices.back())
    matrices.pop_back();
  if (llvm::is_contained(matrices, ir::MatrixAttr()))
    return {};
  if (of.getTurned())
    matrices[1] = matrices[1].turned();
  const bool isTurned =
      matrices[1].getColumnStride() != 1 && matrices[1].getRowStride() == 1;
  // One that the text has no matrices for is none: of one matrix by itself, or
  // into a larger C.
  ScopedDiagnosticHandler ignores(entry.getContext(),
                                  [](Diagnostic &) { return success(); });
  auto fail = [&] { return entry.emitOpError(); };
  return ir::ProductAttr::getChecked(
      llvm::function_ref<InFlightDiagnostic()>(fail), entry.getContext(),
      of.getM(), of.getN(), of.getK(), of.getA(), of.getB(), of.getC(),
      of.getBatch(), isTurned, loop && matrices.size() == 3,
      ArrayRef<ir::MatrixAttr>(matrices));
}

planner::Product sizesOf(ir::ProductAttr product, ElementType factors,
                         ElementType sums, bool isAlone) {
  return {double(product.getM()),
          double(product.getN()),
          double(product.getK()),
          double(product.getBatch()),
          factors,
          sums,
          /*overwrites=*/!isAlone,
          product.getTurned()};
}

} // namespace mgpu::facts
