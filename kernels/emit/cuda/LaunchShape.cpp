// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/emit/cuda/LaunchShape.h"

#include "kernels/emit/cuda/CudaText.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

static std::string describe(Operation *op) {
  std::string text = "uses " + op->getName().getStringRef().str();
  if (auto [file, line] = fileLine(op->getLoc()); line)
    text += " (line " + std::to_string(line) + ")";
  return text;
}

/// Whether `sum` is block id * block size + thread id, along `dim`.
static bool isGlobalIndex(Operation *sum, gpu::Dimension dim, int64_t size) {
  auto add = dyn_cast<arith::AddIOp>(sum);
  if (!add)
    return false;
  auto matches = [&](Value product, Value thread) {
    auto id = thread.getDefiningOp<gpu::ThreadIdOp>();
    auto mul = product.getDefiningOp<arith::MulIOp>();
    if (!id || id.getDimension() != dim || !mul)
      return false;
    for (auto [a, b] : {std::pair(mul.getLhs(), mul.getRhs()),
                        std::pair(mul.getRhs(), mul.getLhs())}) {
      auto block = a.getDefiningOp<gpu::BlockIdOp>();
      if (!block || block.getDimension() != dim)
        continue;
      if (auto given = b.getDefiningOp<gpu::BlockDimOp>())
        return given.getDimension() == dim;
      APInt constant;
      return matchPattern(b, m_ConstantInt(&constant)) &&
             constant == uint64_t(size);
    }
    return false;
  };
  return matches(add.getLhs(), add.getRhs()) ||
         matches(add.getRhs(), add.getLhs());
}

LaunchShape launchShapeOf(ModuleOp module, Dim3 block) {
  LaunchShape shape;
  Operation *meets = nullptr, *alone = nullptr;
  module.walk([&](Operation *op) {
    auto alloca = dyn_cast<memref::AllocaOp>(op);
    bool isShared = (alloca && gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(
                                   alloca.getType())) ||
                    isa<gpu::DynamicSharedMemoryOp, gpu::AllReduceOp>(op);
    shape.usesShared |= isShared;
    if (!meets &&
        (isShared || isa<gpu::BarrierOp, gpu::SubgroupReduceOp, gpu::ShuffleOp,
                         gpu::RotateOp, gpu::LaneIdOp, gpu::SubgroupIdOp>(op)))
      meets = op;
    auto onlyInGlobal = [&](gpu::Dimension dim, bool isBlock) {
      int64_t size = dim == gpu::Dimension::x   ? block.x
                     : dim == gpu::Dimension::y ? block.y
                                                : block.z;
      return llvm::all_of(op->getUsers(), [&](Operation *user) {
        if (!isBlock)
          return isGlobalIndex(user, dim, size);
        return isa<arith::MulIOp>(user) &&
               llvm::all_of(user->getUsers(), [&](Operation *sum) {
                 return isGlobalIndex(sum, dim, size);
               });
      });
    };
    if (auto id = dyn_cast<gpu::ThreadIdOp>(op);
        id && !alone && !onlyInGlobal(id.getDimension(), false))
      alone = op;
    if (auto id = dyn_cast<gpu::BlockIdOp>(op);
        id && !alone && !onlyInGlobal(id.getDimension(), true))
      alone = op;
  });
  shape.reshapable = !meets;
  shape.reason =
      meets   ? "keeps its block: " + describe(meets)
      : alone ? "its threads never meet; its ids are recovered from the global "
                "index, because it " +
                    describe(alone)
              : "depends on its ids only through the global index";
  return shape;
}

} // namespace mgpu::kernels::cuda
