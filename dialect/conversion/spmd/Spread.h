// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SPMD_SPREAD_H
#define MGPU_DIALECT_CONVERSION_SPMD_SPREAD_H

// Makes one function for N devices of the one that each of them runs.

#include "dialect/spmd/SpmdDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"

#include <map>

namespace mgpu::conversion {

// Which values of a program that all devices run differ between devices.

/// Memrefs made in the function, and scalars that depend on the number of the
/// device. Arguments of the function are the same on all devices.
class PerDevice {
public:
  explicit PerDevice(mlir::func::FuncOp function);

  bool contains(mlir::Value value) const { return values.contains(value); }

  /// Whether `op` is a loop or branch of scf that all devices take alike.
  bool takesAlike(mlir::Operation *op) const;

private:
  void visit(mlir::Operation *op);
  bool givesAlike(mlir::Operation *op) const;
  void add(mlir::Value value) { isChanged |= values.insert(value).second; }
  /// Adds `to` where `from` is in the set, pair by pair.
  void flow(mlir::ValueRange from, mlir::ValueRange to);

  llvm::DenseSet<mlir::Value> values;
  bool isChanged = false;
};

/// Replaces the body of a bufferized function by one that names each device.
/// The result has, for each buffer of a device, an mgpu.alloc there. Between
/// two collectives the operations of one device stand together. The calls of
/// one collective follow each other in rank order. Loops and branches that all
/// devices take alike stay one, also where their bodies are several devices'.
class Spread {
public:
  /// With the mark one_device on the function, device 0 alone is written.
  Spread(mlir::func::FuncOp function, int64_t devices);
  /// Fails after a report.
  mlir::LogicalResult run();
  /// A collective in a loop or branch that devices do not take alike, so that
  /// some of a group might not call it; null where there is none.
  mlir::Operation *findUnmatched() const;
  /// An operation that devices do not do alike, so that one does not stand for
  /// all; null where there is nothing, or all devices are written.
  mlir::Operation *findUnlike() const;

private:
  using Segment = llvm::SmallVector<mlir::Operation *>;

  void spreadBlock(mlir::Block &block);
  void spreadSegment(Segment &segment);
  void spreadShared(mlir::Operation *op);
  void spreadOn(spmd::OnOp op);
  void spreadCollective(mlir::Operation *op);
  void spreadPermute(spmd::PermuteOp op);
  void spreadMove(spmd::MoveOp op);
  void spreadRegion(mlir::Region &old, mlir::Region &region,
                    mlir::ValueRange targets);
  llvm::SmallVector<mlir::Value> spreadValues(mlir::ValueRange values,
                                              mlir::ValueRange targets);
  size_t countOf(mlir::Value value) const;
  void mapEach(mlir::ValueRange old, mlir::ValueRange made);
  void mapShared(mlir::Operation *op, mlir::ValueRange results);
  /// Whether the device has all buffers that `op` uses; else reports it.
  bool checkBuffers(int64_t device, mlir::Operation *op);
  void emitOn(int64_t device, mlir::Operation *op);
  void emitBody(int64_t device, spmd::OnOp op);
  void emitCopy(int64_t device, mlir::Operation *op);
  void emitControlFlow(int64_t device, mlir::Operation *op);
  void emitAlloc(int64_t device, mlir::memref::AllocOp op);
  void emitGlobal(int64_t device, mlir::memref::GetGlobalOp op);
  void emitDistribute(int64_t device, spmd::DistributeOp op);
  void emitCollect(int64_t device, spmd::CollectOp op);
  void emitStore(int64_t device, mlir::memref::StoreOp op);
  void emitCustomCall(int64_t device, spmd::CustomCallOp op);

  bool isUniform(mlir::Operation *op) const;
  bool isWritten(int64_t device) const { return device < int64_t(maps.size()); }
  /// All that run this part, written or not.
  llvm::ArrayRef<int64_t> members() const { return isOne ? all : running; }
  /// The value that stands for `value` on a device.
  mlir::Value on(int64_t device, mlir::Value value) const {
    return maps[device].lookupOrDefault(value);
  }
  mlir::MemRefType typeOn(int64_t device, mlir::memref::AllocOp op);
  mlir::Value communicator(llvm::ArrayRef<int64_t> group);
  /// The part of a host buffer that a device has under `layout`.
  mlir::Value partOf(mlir::Value full, spmd::LayoutAttr layout, int64_t device,
                     mlir::Location loc);
  mlir::Location named(mlir::Location loc, int64_t device);

  mlir::func::FuncOp function;
  mlir::OpBuilder b;
  bool isOne;
  llvm::SmallVector<int64_t> all;          ///< devices of the program
  llvm::SmallVector<mlir::IRMapping> maps; ///< by device that is written
  PerDevice perDevice;                     ///< of the old body
  mlir::Operation *head =
      nullptr; ///< the last one of the start of the function
  mlir::Value host;
  bool isFailed = false;
  llvm::SmallVector<mlir::Value> devices;
  llvm::SmallVector<int64_t> running; ///< written devices that run this part
  std::map<llvm::SmallVector<int64_t>, mlir::Value> communicators;
  std::map<std::pair<std::string, int64_t>, mlir::Value> globals;
};

/// Whether `alloc` is memory of the host: what spmd.collect writes.
bool isHostBuffer(mlir::memref::AllocOp alloc);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SPMD_SPREAD_H
