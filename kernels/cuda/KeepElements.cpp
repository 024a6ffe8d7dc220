// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/KeepElements.h"

#include "kernels/lower/LaunchShape.h"
#include "kernels/lower/TripCount.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

namespace {

/// Registers that an array takes of each thread.
constexpr int64_t mostTrips = 16;

/// A load or store of an argument of the entry.
struct Access {
  Operation *op;
  Value memref;
  OperandRange indices;
  scf::ForOp loop; ///< around it; null where it is not one with few trips
  bool isStore() const { return isa<memref::StoreOp>(op); }
};

/// The trips of a loop from 0 that hold values for each; 0 of another loop.
int64_t tripsOf(scf::ForOp loop) {
  const int64_t trips = tripsFromZero(loop);
  return trips > 1 && trips <= mostTrips ? trips : 0;
}

/// Whether two values are the same in the same trip of their loops.
bool isSame(Value a, scf::ForOp loopOfA, Value b, scf::ForOp loopOfB) {
  if (a == b || a == loopOfA.getInductionVar())
    return a == b || b == loopOfB.getInductionVar();
  Operation *opA = a.getDefiningOp(), *opB = b.getDefiningOp();
  if (!opA || !opB || opA->getName() != opB->getName() ||
      opA->getAttrDictionary() != opB->getAttrDictionary() ||
      opA->getNumResults() != 1 || opA->getNumRegions() != 0 ||
      opA->getNumOperands() != opB->getNumOperands() ||
      a.getType() != b.getType() || !isMemoryEffectFree(opA))
    return false;
  return llvm::all_of(
      llvm::zip(opA->getOperands(), opB->getOperands()), [&](auto pair) {
        return isSame(std::get<0>(pair), loopOfA, std::get<1>(pair), loopOfB);
      });
}

bool isSameElement(const Access &a, const Access &b) {
  return tripsOf(a.loop) == tripsOf(b.loop) &&
         llvm::all_of(llvm::zip(a.indices, b.indices), [&](auto pair) {
           return isSame(std::get<0>(pair), a.loop, std::get<1>(pair), b.loop);
         });
}

/// Whether an index is trip * c + thread id along x, where c is no less than
/// the block is long: no two threads of a block, and no two trips, share it.
bool isStripOf(Value index, scf::ForOp loop, Dim3 block) {
  auto sum = index.getDefiningOp<arith::AddIOp>();
  if (!sum)
    return false;
  for (auto [product, thread] : {std::pair(sum.getLhs(), sum.getRhs()),
                                 std::pair(sum.getRhs(), sum.getLhs())}) {
    auto times = product.getDefiningOp<arith::MulIOp>();
    auto id = thread.getDefiningOp<gpu::ThreadIdOp>();
    APInt stride;
    if (times && id && id.getDimension() == gpu::Dimension::x &&
        times.getLhs() == loop.getInductionVar() &&
        matchPattern(times.getRhs(), m_ConstantInt(&stride)) &&
        stride.sge(block.x))
      return true;
  }
  return false;
}

/// Whether each element belongs to one thread: the indices are a strip and the
/// block's ids along all axes that the grid has.
bool isOfOneThread(const Access &access, Dim3 block, Dim3 maxGrid) {
  bool hasStrip = false;
  bool hasBlock[3] = {maxGrid.x == 1, maxGrid.y == 1, maxGrid.z == 1};
  for (Value index : access.indices) {
    if (auto id = index.getDefiningOp<gpu::BlockIdOp>())
      hasBlock[size_t(id.getDimension())] = true;
    else
      hasStrip |= isStripOf(index, access.loop, block);
  }
  return hasStrip && block.y == 1 && block.z == 1 &&
         llvm::all_of(hasBlock, [](bool has) { return has; });
}

/// Puts an array in the place of the buffer, whose accesses of one element come
/// in their order.
void keep(ArrayRef<Access> accesses) {
  scf::ForOp first = accesses.front().loop;
  OpBuilder b(first);
  Location loc = NameLoc::get(b.getStringAttr("kept"), first.getLoc());
  Type type =
      cast<MemRefType>(accesses.front().memref.getType()).getElementType();
  Value array =
      memref::AllocaOp::create(b, loc, MemRefType::get({tripsOf(first)}, type));
  bool isKept = false;
  Operation *stored = nullptr; // the last store so far
  for (const Access &access : accesses) {
    Value at = scf::ForOp(access.loop).getInductionVar();
    ir::setMark(access.loop, ir::Mark::WholeLoop);
    b.setInsertionPointAfter(access.op);
    if (auto store = dyn_cast<memref::StoreOp>(access.op)) {
      memref::StoreOp::create(b, loc, store.getValueToStore(), array, at);
      if (stored)
        stored->erase();
      stored = store;
    } else if (isKept) {
      Value value = memref::LoadOp::create(b, access.op->getLoc(), array, at);
      access.op->getResult(0).replaceAllUsesWith(value);
      access.op->erase();
    } else {
      memref::StoreOp::create(b, loc, access.op->getResult(0), array, at);
    }
    isKept = true;
  }
}

/// Whether memory is not the launch's buffers'.
bool isOfThread(Value memref) {
  return memref.getDefiningOp<memref::AllocaOp>() != nullptr;
}

} // namespace

void keepElements(func::FuncOp entry, const std::vector<bool> &unwritten,
                  Dim3 block, Dim3 maxGrid) {
  llvm::SmallVector<Access> all;
  llvm::SmallPtrSet<Value, 4> written, others; ///< arguments
  entry.walk([&](Operation *op) {
    auto load = dyn_cast<memref::LoadOp>(op);
    auto store = dyn_cast<memref::StoreOp>(op);
    Value accessed = load    ? load.getMemRef()
                     : store ? store.getMemRef()
                             : Value();
    for (Value operand : op->getOperands())
      if (isa<MemRefType>(operand.getType()) && operand != accessed)
        others.insert(operand);
    if (!accessed || !llvm::is_contained(entry.getArguments(), accessed)) {
      if (store && !isOfThread(accessed))
        others.insert(accessed);
      return;
    }
    if (store)
      written.insert(accessed);
    auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
    if (loop && (loop->getParentOp() != entry || tripsOf(loop) == 0))
      loop = nullptr;
    all.push_back(
        {op, accessed, load ? load.getIndices() : store.getIndices(), loop});
  });
  auto isUnwritten = [&](Value buffer) {
    const unsigned number = cast<BlockArgument>(buffer).getArgNumber();
    return number < unwritten.size() && unwritten[number];
  };
  for (BlockArgument buffer : entry.getArguments()) {
    llvm::SmallVector<Access> mine, same;
    llvm::copy_if(all, std::back_inserter(mine),
                  [&](const Access &each) { return each.memref == buffer; });
    const Access *first =
        llvm::find_if(mine, [](const Access &each) { return bool(each.loop); });
    if (first == mine.end() || others.contains(buffer))
      continue;
    llvm::copy_if(mine, std::back_inserter(same), [&](const Access &each) {
      return each.loop && isSameElement(*first, each);
    });
    const bool isConstant = !written.contains(buffer) && isUnwritten(buffer);
    const bool isOwn =
        written.contains(buffer) && others.empty() &&
        same.size() == mine.size() && isOfOneThread(*first, block, maxGrid) &&
        llvm::all_of(all, [&](const Access &each) {
          return each.memref == buffer ||
                 (!written.contains(each.memref) && isUnwritten(each.memref));
        });
    if ((isConstant || isOwn) && same.back().loop != first->loop)
      keep(same);
  }
}

} // namespace mgpu::kernels::cuda
