// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that wait for each other become one launch, whose blocks run at the
// same time.
#include "dialect/conversion/gpu/GpuLaunches.h"
#include "dialect/conversion/gpu/JoinLaunches.h"
#include "dialect/mgpu/Awaits.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/HostCode.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

namespace mgpu::conversion {

using namespace mlir;

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
