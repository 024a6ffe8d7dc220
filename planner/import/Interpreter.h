// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_INTERPRETER_H
#define MGPU_PLANNER_IMPORT_INTERPRETER_H

// Interprets the host code of one entry function: folds scalars, follows
// control flow, unrolls loops, and turns every mgpu operation into DAG nodes.
// It changes nothing in the module.

#include "dialect/mgpu/MgpuDialect.h"
#include "planner/import/BuildDag.h"
#include "planner/import/CollectiveMatcher.h"
#include "planner/import/HostValue.h"
#include "planner/import/KernelOutline.h"
#include "planner/import/NodeRecorder.h"
#include "planner/import/RollLoop.h"
#include "planner/import/SourceOrder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace mgpu::planner {

class Interpreter {
public:
  using Values = llvm::SmallVector<HostValue, 4>;

  /// `loop`, if any, is to be rolled: two trips of it are run.
  Interpreter(mlir::ModuleOp module, const ImportOptions &options, Dag &dag,
              mlir::scf::ForOp loop);

  /// Runs the function; the result is what it returns. Fails after a
  /// diagnostic.
  mlir::FailureOr<Values> runEntry(mlir::func::FuncOp function,
                                   Values arguments);

  BufferId addBuffer(std::string name, DeviceId device, BufferRole role,
                     mlir::MemRefType type);
  uint32_t numRaces() const { return recorder.numRaces(); }
  /// Set when the failure was something this version does not support.
  bool isUnsupported() const { return unsupported; }
  /// Set once two trips stand for the loop.
  const std::optional<RolledTrips> &rolledTrips() const { return rolled; }

private:
  // Interpreter.cpp: control flow and scalars
  mlir::FailureOr<Values> runRegion(mlir::Region &region, Values arguments);
  mlir::LogicalResult step(mlir::Operation *op); ///< fails in endless code
  mlir::LogicalResult visit(mlir::Operation *op);
  mlir::LogicalResult visitFor(mlir::Operation *op);
  mlir::LogicalResult visitRolled(Induction values, uint64_t trips);
  mlir::LogicalResult visitIf(mlir::Operation *op);
  mlir::LogicalResult visitWhile(mlir::Operation *op);
  mlir::LogicalResult visitCall(mlir::func::CallOp call);
  mlir::LogicalResult fold(mlir::Operation *op);
  bool foldInduction(mlir::Operation *op);
  const Induction *findInduction(mlir::Value value) const;
  void setInduction(mlir::Value value, Induction values);
  mlir::LogicalResult notSupported(mlir::Operation *op, const llvm::Twine &why);

  // HostMemory.cpp: memref operations of host code
  bool visitMemory(mlir::Operation *op, mlir::LogicalResult &result);
  mlir::LogicalResult visitSubview(mlir::Operation *op);
  mlir::LogicalResult visitReinterpretCast(mlir::Operation *op);
  mlir::LogicalResult visitReshape(mlir::Operation *op);
  mlir::LogicalResult visitGetGlobal(mlir::Operation *op);

  // Commands.cpp: mgpu operations
  bool visitCommand(mlir::Operation *op, mlir::LogicalResult &result);
  mlir::LogicalResult allocate(mlir::Operation *op, mlir::Value result,
                               mlir::Value device, std::string name);
  mlir::LogicalResult visitAlloc(ir::AllocOp op);
  mlir::LogicalResult visitShardedAlloc(ir::ShardedAllocOp op);
  mlir::LogicalResult visitGetDevice(ir::GetDeviceOp op);
  mlir::LogicalResult visitCreateCommunicator(ir::CreateCommunicatorOp op);
  mlir::LogicalResult freeBuffer(mlir::Operation *op, mlir::Value pointer,
                                 mlir::Value device);
  mlir::LogicalResult destroyStream(mlir::Operation *op, mlir::Value stream);
  mlir::LogicalResult visitStreamWait(ir::StreamWaitOp op);
  /// Copies `shards` to or from slices of `whole` along `axis`.
  mlir::LogicalResult
  visitShards(mlir::Operation *op, mlir::Value whole, mlir::Value wholeDevice,
              mlir::OperandRange shards, mlir::OperandRange devices,
              mlir::OperandRange streams, int64_t axis,
              llvm::ArrayRef<int64_t> sliceSizes, bool toShards);
  mlir::LogicalResult visitReplicate(ir::ReplicateOp op);
  /// What is copied or received lands in one order, so no two of its elements
  /// may have one place.
  mlir::LogicalResult checkDistinct(mlir::Operation *op,
                                    const MemRefValue &written);
  mlir::LogicalResult copy(mlir::Operation *op, const MemRefValue &destination,
                           const MemRefValue &source, mlir::Type elementType,
                           mlir::Value stream, std::string name);

  // LaunchCalls.cpp
  mlir::LogicalResult visitLaunch(ir::LaunchOp op);
  /// The device's copy of a dynamic scalar, made at the head of the graph.
  mlir::FailureOr<BufferId> parameterOn(DeviceId device, mlir::Value scalar,
                                        DynamicValue value);

  // CollectiveCalls.cpp
  mlir::LogicalResult visitAllReduce(ir::AllReduceOp op);
  mlir::LogicalResult visitAllGather(ir::AllGatherOp op);
  mlir::LogicalResult visitBroadcast(ir::BroadcastOp op);
  mlir::LogicalResult visitPointToPoint(mlir::Operation *op, mlir::Value buffer,
                                        mlir::Value communicator,
                                        mlir::Value peer, mlir::Value stream,
                                        bool isSend);
  /// Sets the buffer a call receives into, on the device it sends from.
  mlir::LogicalResult receiveInto(mlir::Operation *op, mlir::Value buffer,
                                  CollectiveCallSite &site);
  mlir::FailureOr<CollectiveCallSite>
  startCall(mlir::Operation *op, CollectiveKind kind, mlir::Value buffer,
            mlir::Value communicator, mlir::Value stream);

  // Shared
  const HostValue &valueOf(mlir::Value value) const;
  void set(mlir::Value value, HostValue known) {
    values[value] = std::move(known);
  }
  mlir::FailureOr<int64_t> integerOf(mlir::Operation *op, mlir::Value value,
                                     const llvm::Twine &what);
  mlir::FailureOr<int64_t> integerOf(mlir::Operation *op,
                                     mlir::OpFoldResult value,
                                     const llvm::Twine &what);
  mlir::FailureOr<MemRefValue> memrefOf(mlir::Operation *op, mlir::Value value);
  mlir::FailureOr<DeviceId> deviceOf(mlir::Operation *op, mlir::Value value);
  /// The chain a command goes on: its stream's, else the device's default.
  mlir::FailureOr<uint32_t> chainOf(mlir::Operation *op, mlir::Value stream,
                                    DeviceId device);
  mlir::LogicalResult checkLive(mlir::Operation *op, BufferId buffer);
  void warnIfElsewhere(mlir::Operation *op, const MemRefValue &view,
                       mlir::Value device, const char *what);
  /// Queues the node; without a stream the host waits for it.
  mlir::LogicalResult enqueue(mlir::Operation *op, RecordedNode entry,
                              uint32_t chain, bool blocks);
  mlir::LogicalResult hostWaits(mlir::Operation *op, uint32_t chain);
  void noteUse(BufferId buffer, SourcePoint point);

  mlir::ModuleOp module;
  const ImportOptions &options;
  Dag &dag;
  mlir::scf::ForOp loopToRoll;
  std::optional<RolledTrips> rolled;
  bool inRolledLoop = false;
  SourceOrder order;
  NodeRecorder recorder;
  CollectiveMatcher matcher;
  KernelTable kernels;
  llvm::DenseMap<mlir::Value, HostValue> values;
  llvm::DenseMap<mlir::Operation *, BufferId> globals;
  std::map<std::string, uint32_t> bufferNames;
  struct BufferLife {
    std::optional<mlir::Location> freedAt;
    VectorClock lastUses;
  };
  std::vector<BufferLife> lives;
  std::map<uint32_t, mlir::Location> destroyedStreams;
  std::map<std::pair<DeviceId, BufferId>, BufferId> parameters;
  uint64_t idleSteps = 0; ///< of host code, since the last node
  size_t nodesAtLastStep = 0;
  llvm::SmallVector<mlir::Operation *> active; ///< functions being run
  bool unsupported = false;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_INTERPRETER_H
