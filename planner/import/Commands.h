// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_COMMANDS_H
#define MGPU_PLANNER_IMPORT_COMMANDS_H

// From mgpu operations of host code to calls of the recorder.

#include "dialect/mgpu/MgpuDialect.h"
#include "planner/import/HostScope.h"
#include "planner/import/KernelAccess.h"
#include "planner/import/KernelOutline.h"

#include "llvm/ADT/SetVector.h"

#include <map>
#include <set>

namespace mgpu::planner {

class Commands {
public:
  Commands(mlir::ModuleOp module, const ImportOptions &options, HostScope &host)
      : options(options), host(host), recorder(host.recorder),
        kernels(module, host.recorder, options.kernelTexts) {}

  /// Issues an operation of the mgpu dialect. Fails after a diagnostic.
  Result<void> visit(mlir::Operation *op);

private:
  // Commands.cpp: devices, streams, memory
  Result<void> issue(ir::GetDeviceOp op);
  Result<void> issue(ir::AllocOp op);
  Result<void> issue(ir::ShardedAllocOp op);
  Result<void> issue(ir::FreeOp op);
  Result<void> issue(ir::ShardedFreeOp op);
  Result<void> issue(ir::CreateStreamOp op);
  Result<void> issue(ir::DestroyStreamOp op);
  Result<void> issue(ir::SyncStreamOp op);
  Result<void> issue(ir::SyncDeviceOp op);
  Result<void> issue(ir::StreamWaitOp op);
  Result<void> issue(ir::OutputOp op);
  Result<void> allocate(mlir::Operation *op, mlir::Value result,
                        mlir::Value device, std::string name);
  Result<void> freeBuffer(mlir::Operation *op, mlir::Value pointer,
                          mlir::Value device);

  Result<void> issue(ir::MemcpyOp op);
  Result<void> issue(ir::ScatterOp op);
  Result<void> issue(ir::UnevenScatterOp op);
  Result<void> issue(ir::GatherOp op);
  Result<void> issue(ir::ReplicateOp op);
  /// The view, with a warning where `device` is not its buffer's.
  Result<View> partOn(mlir::Operation *op, mlir::Value value,
                      mlir::Value device, const char *what);
  Result<void> copy(mlir::Operation *op, const View &destination,
                    const View &source, mlir::Value stream);
  /// The parts of a scatter or gather.
  struct Shards {
    mlir::Value whole, wholeDevice;
    mlir::OperandRange shards, devices, streams;
    int64_t axis;
    llvm::ArrayRef<int64_t> sizes; ///< along the axis; empty: the shards' own
    bool toShards;
  };
  Result<void> copyShards(mlir::Operation *op, const Shards &parts);

  Result<void> issue(ir::CreateCommunicatorOp op);
  Result<void> issue(ir::AllReduceOp op);
  Result<void> issue(ir::AllGatherOp op);
  Result<void> issue(ir::ReduceScatterOp op);
  Result<void> issue(ir::AllToAllOp op);
  Result<void> issue(ir::PermuteOp op);
  Result<void> issue(ir::BroadcastOp op);
  Result<void> issue(ir::SendOp op);
  Result<void> issue(ir::RecvOp op);
  /// The parts that every rank's call has.
  struct RankCall {
    uint32_t communicator;
    View buffer; ///< the one it sends, or its only one
    CallSite site;
  };
  Result<RankCall> startCall(mlir::Operation *op, mlir::Value buffer,
                             mlir::Value communicator, mlir::Value stream);

  // LaunchCalls.cpp
  Result<void> issue(ir::LaunchOp op);
  Result<Dim3> dimsOf(ir::LaunchOp op, mlir::OperandRange sizes,
                      const char *what);
  Result<int64_t> sharedBytesOf(ir::LaunchOp op);
  /// summariseKernel() of the body; trips of a loop share it.
  std::shared_ptr<const KernelSummary> summaryOf(ir::LaunchOp op, Dim3 grid,
                                                 Dim3 block,
                                                 HostValueOf valueOf,
                                                 SummaryParts parts);
  /// Which bytes the launch touches, and how much it computes.
  Result<void> addUses(ir::LaunchOp op, const KernelSummary &summary,
                       LaunchSpec &launch);
  /// Keeps the launches of a function with `mgpu.in_order` in their order: each
  /// writes bytes that stand for its device's turn, so that all that plans,
  /// changes or proves the DAG knows it. A launch of one of two works that run
  /// as one writes the byte of its half, and reads those of the pair before;
  /// any other writes all.
  llvm::SmallVector<LaunchUse, 2> turnOf(DeviceId device, int64_t half);

  const ImportOptions &options;
  HostScope &host;
  Recorder &recorder;
  KernelTable kernels;
  KnownMeetings knownMeetings;
  /// By kernel, grid, offsets and scalars, which decide it.
  std::map<std::vector<uint64_t>, std::optional<LaunchWork>> knownWork;
  /// Launches without a race, by what decides it.
  std::set<std::vector<uint64_t>> raceFree;
  /// The values that a launch captures, and its summaries by what they are.
  struct KnownLaunch {
    llvm::SetVector<mlir::Value> captured;
    std::map<std::vector<uint64_t>, std::shared_ptr<const KernelSummary>>
        summaries;
  };
  llvm::DenseMap<mlir::Operation *, KnownLaunch> launches;
  size_t numSummaries = 0; ///< in all of them
  struct Turns {
    BufferId buffer;
    int64_t half = 0;         ///< of the last launch
    int64_t pair = 0;         ///< the last one's number, modulo 2
    bool followsPair = false; ///< at once, with no other launch between
  };
  std::map<DeviceId, Turns> turns;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_COMMANDS_H
