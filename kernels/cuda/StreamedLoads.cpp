// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/StreamedLoads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/DenseMap.h"

#include <bitset>

using namespace mlir;

namespace mgpu::kernels::cuda {

// Less than this is in a cache whatever is asked for.
static constexpr int64_t largeBytes = 1 << 20;

/// Thread ids x, y, z, then block ids.
using Ids = std::bitset<6>;

static Ids longAxes(Dim3 block, Dim3 grid) {
  Ids ids;
  const uint32_t sizes[] = {block.x, block.y, block.z, grid.x, grid.y, grid.z};
  for (size_t k = 0; k < 6; ++k)
    ids.set(k, sizes[k] > 1);
  return ids;
}

namespace {

/// The values that an index is a sum or product of.
struct Origins {
  Ids ids;
  llvm::SmallPtrSet<Operation *, 4> loops;
  bool isInjective = true; ///< as far as is looked at

  void add(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (loop && argument == loop.getInductionVar())
        loops.insert(loop);
      else
        isInjective &= !loop;
      return;
    }
    Operation *op = value.getDefiningOp();
    if (auto id = dyn_cast<gpu::ThreadIdOp>(op))
      ids.set(size_t(id.getDimension()));
    else if (auto block = dyn_cast<gpu::BlockIdOp>(op))
      ids.set(3 + size_t(block.getDimension()));
    else if (auto global = dyn_cast<gpu::GlobalIdOp>(op))
      ids.set(size_t(global.getDimension()))
          .set(3 + size_t(global.getDimension()));
    else if (isa<arith::AddIOp, arith::MulIOp, arith::IndexCastOp,
                 arith::IndexCastUIOp>(op))
      for (Value operand : op->getOperands())
        add(operand);
    else
      isInjective &= op->hasTrait<OpTrait::ConstantLike>();
  }
};

} // namespace

static Value rootOf(Value memref) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>())
    memref = view.getViewSource();
  return memref;
}

static bool readsOnce(memref::LoadOp load, Ids axes) {
  Origins origins;
  for (Value index : load.getIndices())
    origins.add(index);
  for (Operation *above = load->getParentOp(); !isa<func::FuncOp>(above);
       above = above->getParentOp())
    if (isa<LoopLikeOpInterface>(above) && !origins.loops.contains(above))
      return false;
  return origins.isInjective && (axes & ~origins.ids).none();
}

llvm::DenseSet<Operation *> streamedLoads(func::FuncOp entry,
                                          const std::vector<bool> &unwritten,
                                          Dim3 block, Dim3 maxGrid) {
  llvm::DenseMap<Value, SmallVector<Operation *>> users; // by argument
  entry.walk([&](Operation *op) {
    if (isa<ViewLikeOpInterface>(op))
      return;
    for (Value operand : op->getOperands())
      if (isa<MemRefType>(operand.getType()))
        users[rootOf(operand)].push_back(op);
  });
  llvm::DenseSet<Operation *> found;
  for (BlockArgument argument : entry.getArguments()) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    const unsigned number = argument.getArgNumber();
    if (!type || !type.hasStaticShape() || number >= unwritten.size() ||
        !unwritten[number] || !type.getElementType().isIntOrFloat() ||
        type.getNumElements() * type.getElementTypeBitWidth() / 8 < largeBytes)
      continue;
    const auto &all = users[argument];
    auto load = all.size() == 1 ? dyn_cast<memref::LoadOp>(all.front())
                                : memref::LoadOp();
    if (load && readsOnce(load, longAxes(block, maxGrid)))
      found.insert(load);
  }
  return found;
}

} // namespace mgpu::kernels::cuda
