// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/gpu/JoinLaunches.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

namespace mgpu::conversion {

using namespace mlir;

namespace {

bool areEqual(Value a, Value b) {
  std::optional<int64_t> x = getConstantIntValue(a), y = getConstantIntValue(b);
  return a == b || (x && y && *x == *y);
}

bool areOnOneDevice(ir::LaunchOp a, ir::LaunchOp b) {
  auto x = ir::getConstantDeviceIndex(a.getDevice()),
       y = ir::getConstantDeviceIndex(b.getDevice());
  return a.getDevice() == b.getDevice() || (x && y && *x == *y);
}

/// The arithmetic of a launch that is a part of another one.
class Part {
public:
  Part(OpBuilder &b, ir::LaunchOp launch) : b(b), launch(launch) {
    blocks = number(1);
    for (Value size : launch.getGrid())
      blocks = make<arith::MulIOp>(blocks, size);
  }

  Value numBlocks() const { return blocks; }

  /// Copies the body to where `b` points, for a block of number `block`.
  void copy(Value block, ValueRange buffers) {
    IRMapping map;
    map.map(launch.getWorkgroupBuffers(), buffers);
    SmallVector<Operation *> copies;
    for (Operation &op : launch.getBody().front().without_terminator())
      copies.push_back(b.clone(op, map));
    for (Operation *copy : copies)
      copy->walk([&](Operation *inner) { answer(inner, block); });
  }

private:
  Value number(int64_t value) {
    return arith::ConstantIndexOp::create(b, launch.getLoc(), value);
  }

  template <typename Op>
  Value make(Value x, Value y) {
    return b.createOrFold<Op>(launch.getLoc(), x, y);
  }

  Value sizeOf(gpu::Dimension axis) {
    return size_t(axis) < launch.getGrid().size()
               ? launch.getGrid()[size_t(axis)]
               : number(1);
  }

  Value idOf(gpu::Dimension axis, Value block) {
    for (unsigned k = 0; k < unsigned(axis); ++k)
      block = make<arith::DivUIOp>(block, sizeOf(gpu::Dimension(k)));
    return axis == gpu::Dimension::z
               ? block
               : make<arith::RemUIOp>(block, sizeOf(axis));
  }

  void answer(Operation *op, Value block) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(op);
    Location loc = op->getLoc();
    if (auto id = dyn_cast<gpu::BlockIdOp>(op)) {
      op->replaceAllUsesWith(ValueRange(idOf(id.getDimension(), block)));
    } else if (auto size = dyn_cast<gpu::GridDimOp>(op)) {
      op->replaceAllUsesWith(ValueRange(sizeOf(size.getDimension())));
    } else if (auto id = dyn_cast<gpu::GlobalIdOp>(op)) {
      const gpu::Dimension axis = id.getDimension();
      Value first = make<arith::MulIOp>(idOf(axis, block),
                                        gpu::BlockDimOp::create(b, loc, axis));
      op->replaceAllUsesWith(ValueRange(
          make<arith::AddIOp>(first, gpu::ThreadIdOp::create(b, loc, axis))));
    }
  }

  OpBuilder &b;
  ir::LaunchOp launch;
  Value blocks;
};

} // namespace

StringRef whyApart(ir::LaunchOp a, ir::LaunchOp b) {
  if (a->getBlock() != b->getBlock())
    return "they stand in different loops or branches";
  if (!areOnOneDevice(a, b))
    return "they are on different devices";
  if (a.getBlock().size() != b.getBlock().size() ||
      !llvm::all_of(llvm::zip(a.getBlock(), b.getBlock()), [](auto sizes) {
        return areEqual(std::get<0>(sizes), std::get<1>(sizes));
      }))
    return "their blocks have different sizes";
  if (a.getDynamicSharedMemorySize() || b.getDynamicSharedMemorySize())
    return "they have dynamic workgroup memory";
  if (ir::clusterOf(a) || ir::clusterOf(b))
    return "they have clusters";
  return {};
}

ir::LaunchOp joinLaunches(ir::LaunchOp earlier, ir::LaunchOp later) {
  OpBuilder b(later);
  Location loc =
      FusedLoc::get(b.getContext(), {earlier.getLoc(), later.getLoc()});
  ir::StreamWaitOp::create(b, loc, later.getStream(), earlier.getStream());
  Part first(b, earlier), second(b, later);
  SmallVector<Type> buffers;
  for (ir::LaunchOp each : {earlier, later})
    llvm::append_range(buffers, each.getWorkgroupBuffers().getTypes());
  Value grid =
      b.createOrFold<arith::AddIOp>(loc, first.numBlocks(), second.numBlocks());
  auto made =
      ir::LaunchOp::create(b, loc, later.getDevice(), grid, later.getBlock(),
                           later.getStream(), ValueRange(), buffers, Value());
  made->setAttrs(later->getDiscardableAttrDictionary());
  const auto numFirst = earlier.getWorkgroupBuffers().size();
  auto all = made.getWorkgroupBuffers();
  b.setInsertionPoint(made.getBody().front().getTerminator());
  Value block = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x);
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                        block, first.numBlocks());
  auto either = scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/true);
  b.setInsertionPointToStart(either.thenBlock());
  first.copy(block, all.take_front(numFirst));
  b.setInsertionPointToStart(either.elseBlock());
  second.copy(arith::SubIOp::create(b, loc, block, first.numBlocks()),
              all.drop_front(numFirst));
  made.walk([](Operation *op) {
    if (isa<gpu::BlockIdOp, gpu::GridDimOp, gpu::GlobalIdOp>(op) &&
        op->use_empty())
      op->erase();
  });
  // Operations that wait for the first wait for both.
  earlier.getStream().replaceUsesWithIf(later.getStream(), [&](OpOperand &use) {
    Operation *user = made->getBlock()->findAncestorOpInBlock(*use.getOwner());
    return user && made->isBeforeInBlock(user);
  });
  earlier.erase();
  later.erase();
  return made;
}

} // namespace mgpu::conversion
