// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that wait for each other become one launch, whose blocks run at the
// same time.
#include "dialect/conversion/gpu/GpuLaunches.h"
#include "dialect/mgpu/Awaits.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/HostCode.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

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

/// Why both cannot be one launch; empty if they can.
static StringRef whyApart(ir::LaunchOp a, ir::LaunchOp b) {
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

/// One launch in place of both, on the stream of `later` and where that stands,
/// whose first blocks are those of `earlier`.
static ir::LaunchOp joinLaunches(ir::LaunchOp earlier, ir::LaunchOp later) {
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

namespace {

/// A launch, the memory that it names, and that whose changes it awaits.
struct Waiting {
  ir::LaunchOp launch;
  llvm::SetVector<Value> named, awaited;
};

/// A load that is to see what others write in the meantime is an atomic one.
FailureOr<Value> readAtomically(Operation *read) {
  auto load = dyn_cast<memref::LoadOp>(read);
  if (!load)
    return cast<memref::AtomicRMWOp>(read).getMemref();
  Type type = load.getType();
  if (!type.isInteger(32) && !type.isInteger(64)) {
    ir::emitUnsupported(read)
        << "awaits a change of memory of type " << type
        << ", which no atomic operation reads; use i32 or i64";
    return failure();
  }
  OpBuilder b(read);
  Value none =
      arith::ConstantOp::create(b, read->getLoc(), b.getIntegerAttr(type, 0));
  auto atomic =
      memref::AtomicRMWOp::create(b, read->getLoc(), arith::AtomicRMWKind::ori,
                                  none, load.getMemref(), load.getIndices());
  load.replaceAllUsesWith(atomic.getResult());
  Value memref = load.getMemref();
  load.erase();
  return memref;
}

LogicalResult findWaiting(func::FuncOp function,
                          SmallVectorImpl<Waiting> &found) {
  SmallVector<ir::LaunchOp> launches;
  function.walk([&](ir::LaunchOp launch) { launches.push_back(launch); });
  for (ir::LaunchOp launch : launches) {
    SmallVector<Operation *> reads;
    launch.walk(
        [&](scf::WhileOp loop) { reads.append(ir::awaitedReads(loop)); });
    Waiting waiting{launch, {}, {}};
    for (Value memref : ir::memrefsOf(launch))
      waiting.named.insert(ir::rootOf(memref));
    for (Operation *read : reads) {
      FailureOr<Value> memref = readAtomically(read);
      if (failed(memref))
        return failure();
      waiting.awaited.insert(ir::rootOf(*memref));
    }
    if (!reads.empty())
      ir::setMark(launch, ir::Mark::AwaitsOthers);
    if (launch.getStream())
      found.push_back(std::move(waiting));
  }
  return success();
}

/// Whether what `stream` does begins behind what is on `earlier`.
bool isBehind(Value stream, Value earlier) {
  llvm::SetVector<Value> todo;
  todo.insert(stream);
  for (size_t k = 0; k < todo.size(); ++k)
    for (Operation *user : todo[k].getUsers())
      if (auto wait = dyn_cast<ir::StreamWaitOp>(user);
          wait && wait.getWaitingStream() == todo[k])
        todo.insert_range(wait.getWaitOnStreams());
  return todo.contains(earlier);
}

/// An operation that may not begin before `earlier` has ended, and stands
/// before `later`.
Operation *userBetween(ir::LaunchOp earlier, ir::LaunchOp later) {
  for (Operation *user : earlier.getStream().getUsers())
    if (Operation *here = earlier->getBlock()->findAncestorOpInBlock(*user);
        here && earlier->isBeforeInBlock(here) && here->isBeforeInBlock(later))
      return user;
  return nullptr;
}

} // namespace

LogicalResult joinWaitingLaunches(func::FuncOp function) {
  SmallVector<Waiting> all;
  if (failed(findWaiting(function, all)))
    return failure();
  for (size_t later = 1; later < all.size(); ++later)
    for (size_t earlier = 0; earlier < later; ++earlier) {
      auto &[first, firstNamed, firstAwaited] = all[earlier];
      auto &[second, named, awaited] = all[later];
      if (llvm::none_of(firstAwaited,
                        [&](Value root) { return named.contains(root); }) ||
          isBehind(second.getStream(), first.getStream()))
        continue;
      StringRef reason = whyApart(first, second);
      Operation *between =
          reason.empty() ? userBetween(first, second) : nullptr;
      if (isa_and_nonnull<ir::SyncStreamOp>(between))
        continue; // the host has waited for the first
      if (between)
        reason = "the first is awaited between them";
      if (!reason.empty()) {
        InFlightDiagnostic error =
            ir::emitUnsupported(second)
            << "may be what another launch waits for, so both must run as one, "
               "but "
            << reason;
        error.attachNote(first.getLoc()) << "the other launch is here";
        return error;
      }
      second = joinLaunches(first, second);
      ir::setMark(second, ir::Mark::AwaitsOthers);
      named.insert_range(firstNamed);
      awaited.insert_range(firstAwaited);
      all.erase(all.begin() + long(earlier));
      later = 0;
      break;
    }
  return success();
}

} // namespace mgpu::conversion
