// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_HOST_BLOCKEMITTER_H
#define MGPU_KERNELS_HOST_BLOCKEMITTER_H

// The region transformation behind ThreadLoops.h: one block's work as loops
// over its threads.

#include "facts/Uniformity.h"
#include "kernels/host/ThreadLoops.h"
#include "support/Types.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

#include <array>
#include <optional>

namespace mgpu::kernels {

/// Bytes of one `type` in a per-thread array.
int64_t sizeOf(mlir::Type type);

/// The largest divisor of `extent` that is no larger than `most`, or 1.
int64_t divisorOf(int64_t extent, int64_t most);

/// Whether no loop lies within `loop`.
bool isInnermost(mlir::Operation *loop);

/// Whether `op` may do more than read memory.
bool mayWrite(mlir::Operation *op);

class BlockEmitter {
public:
  BlockEmitter(mlir::func::FuncOp kernel, mlir::func::FuncOp target,
               const HostShape &shape, mlir::IRMapping uniform)
      : kernel(kernel), target(target), shape(shape), block(shape.covered),
        numThreads(int64_t(block.volume())), uniformity(kernel.getBody()),
        uniform(std::move(uniform)), b(kernel.getContext()) {}

  /// Emits the kernel's body for one block where `at` points.
  mlir::LogicalResult run(mlir::OpBuilder &at);

private:
  using Value = mlir::Value;
  using Operation = mlir::Operation;

  /// Where a thread's code is being emitted.
  struct Thread {
    mlir::IRMapping map; ///< source values available in this thread loop
    Value ids[3];
    Value linear; ///< the thread's number in its block
    Value local;  ///< its number in its tile, if it has one
  };

  /// Neighbouring threads whose code is vectors; the first of them.
  struct RowPart {
    Thread thread;
    mlir::IRMapping vectors; ///< source values as vectors
  };

  /// A part of the block that runs a whole loop before the next part starts,
  /// small enough for the loop's values to stay in registers.
  struct Tile {
    Value x, y, z; ///< its first thread
    int64_t width = 0, height = 0;
    bool active() const { return width != 0; }
    int64_t size() const { return width * height; }
  };

  /// `linear PREDICATE bound`, or a uniform condition where `bound` is null.
  struct Guard {
    Value linear, bound;
    mlir::arith::CmpIPredicate predicate;
    std::array<int64_t, 3> strides; ///< of `linear`
  };
  /// Two conditions at run time.
  struct AllThreads {
    Value ordered; ///< no guard's value wraps around within the block
    Value inside;  ///< given that, all threads pass all guards
  };

  mlir::LogicalResult emitBlock(mlir::Block &source);
  mlir::LogicalResult emitShared(mlir::memref::AllocaOp alloca);
  mlir::LogicalResult emitFor(mlir::scf::ForOp loop);
  mlir::LogicalResult emitForInDomain(mlir::scf::ForOp loop);
  /// Whether a loop is one of rows (RowLoops.cpp), and its emission.
  bool isRowLoop(mlir::scf::ForOp loop) const;
  bool isRowLoad(mlir::memref::LoadOp load) const;
  mlir::LogicalResult emitRowLoop(mlir::scf::ForOp loop);
  mlir::LogicalResult emitRowTile(mlir::scf::ForOp loop, int64_t first,
                                  int64_t count, int64_t lanes,
                                  mlir::MutableArrayRef<RowPart> parts);
  mlir::LogicalResult cloneForLanes(Operation &op, int64_t lanes,
                                    RowPart &part);
  /// Null if it is not known.
  Value vectorOf(Value value, int64_t lanes, RowPart &part, Operation *user);
  /// The tile for `loop`, or none where it must or may as well run for the
  /// whole block.
  Tile chooseTile(mlir::scf::ForOp loop) const;
  /// By how much an integer grows from one thread to the next, in its own bits.
  std::optional<std::array<int64_t, 3>> stridesOf(Value value) const;
  /// Adds to `guards` comparisons that together are `condition`; false where
  /// it is not made of such.
  bool collectGuards(Value condition,
                     mlir::SmallVectorImpl<Guard> &guards) const;
  mlir::FailureOr<AllThreads> allThreads(mlir::ArrayRef<Guard> guards,
                                         Operation *op);
  /// Whether the threads of a row (one y and z) that pass `guards` lie side by
  /// side wherever no value wraps around.
  bool hasRowRange(mlir::ArrayRef<Guard> guards) const;
  /// The first of them in the row of `row`, and how many they are.
  mlir::FailureOr<std::pair<Value, Value>>
  rowRange(mlir::ArrayRef<Guard> guards, const Thread &row, Operation *op);
  mlir::LogicalResult emitLikelyIf(mlir::scf::IfOp branch,
                                   mlir::ArrayRef<Guard> guards);
  /// Copies what neighbouring threads load from rows of their own in a loop,
  /// where rows of threads share it; the loop loads from the copy.
  mlir::LogicalResult packLoads(mlir::scf::ForOp loop);
  bool isGathered(mlir::memref::LoadOp load, mlir::scf::ForOp loop) const;
  /// The indices at `k` of the thread `x` of a row; none where they are not
  /// known yet.
  mlir::SmallVector<Value> rowAt(mlir::memref::LoadOp load, Value x, Value k);
  /// Copies what neighbouring threads load from rows of their own, where rows
  /// of threads go along these.
  mlir::LogicalResult packTurned();
  /// Makes and fills a panel, whose columns are threads of a row and whose rows
  /// are trips, or rows of threads.
  mlir::LogicalResult pack(mlir::memref::LoadOp load, int64_t trips);
  Value loadPacked(mlir::memref::LoadOp load, const Thread &thread);
  mlir::LogicalResult emitIf(mlir::scf::IfOp branch);
  mlir::LogicalResult emitWhile(mlir::scf::WhileOp loop);
  mlir::LogicalResult emitConvergent(Operation *op);
  mlir::LogicalResult emitAllReduce(mlir::gpu::AllReduceOp op);
  mlir::LogicalResult emitSubgroupReduce(mlir::gpu::SubgroupReduceOp op);
  /// Arrays that begin with what the subgroups reduce `values` to, which has
  /// one value for each thread. folded() makes vectors where canFold() says so.
  bool canFold(mlir::Type type) const;
  mlir::FailureOr<Value>
  folded(Value values, mlir::gpu::AllReduceOperation kind, Operation *op);
  mlir::FailureOr<Value>
  foldedOneByOne(Value values, llvm::function_ref<Value(Value, Value)> join,
                 Operation *op);

  /// Ends the segment: emits the thread loop of the pending operations and
  /// stores. `last` says that the source block's terminator follows, its
  /// operands being among the stores.
  mlir::LogicalResult flush(mlir::Block *source, bool last = false);
  mlir::LogicalResult emitThreadLoops();
  mlir::LogicalResult emitRow(const Thread &thread);
  mlir::LogicalResult emitRange(const Thread &thread);
  mlir::LogicalResult emitInnermost(Thread &thread, bool inLoop);
  /// Goes into a loop over 0 to `extent`; its index, 0 where that is 1.
  Value openLoop(int64_t extent);
  mlir::LogicalResult emitThread(Thread &thread);
  /// Marks the loop around where code is being emitted (LoopMark).
  /// Marks the innermost loops in `op`, where they are to be unrolled.
  void markSequential(Operation *op);
  mlir::LogicalResult clonePending(Operation *op, Thread &thread);
  void emitShuffle(Operation *op, Thread &thread);
  mlir::FailureOr<Value> lookup(Value value, Thread &thread, Operation *user);

  /// Whether a value of a thread is computed again in each segment rather than
  /// kept: integer arithmetic on ids and uniform values, views of memory.
  bool isRecomputed(Operation *op) const;
  bool livesOn(Value value, mlir::Block *source, bool last) const;
  bool pendingWrites() const;
  bool pendingIsParallel() const;

  /// A new array with one `type` per thread, and how to use it.
  /// In a tile it has the tile's size.
  mlir::FailureOr<Value> newArray(mlir::Type type, Operation *op);
  mlir::LogicalResult checkScratch(uint64_t count, uint64_t size,
                                   Operation *op);
  /// Adds `op` to what is pending. Work of one thread of each row is a segment
  /// of its own: it would keep the others' loop from becoming vectors.
  mlir::LogicalResult insert(Operation *op);
  /// The x of the one thread of each row that what is pending is for, if it is.
  std::optional<int64_t> onlyThread() const;
  /// Has the pending segment store `value` of each thread to a new array.
  mlir::FailureOr<Value> storeToArray(Value value, Operation *op);
  mlir::FailureOr<mlir::SmallVector<Value>> arraysFor(mlir::ValueRange values,
                                                      Operation *op);
  void storeVarying(mlir::ValueRange values, mlir::ValueRange targets,
                    mlir::ArrayRef<Value> arrays);
  Value constant(int64_t value);
  Value times(Value x, int64_t y);
  Value plus(Value x, Value y);

  mlir::func::FuncOp kernel, target;
  HostShape shape;
  Dim3 block; ///< shape.covered
  int64_t numThreads;
  facts::Uniformity uniformity;
  mlir::IRMapping uniform;
  mlir::OpBuilder b;
  Tile tile;
  llvm::DenseSet<Value> tileArrays;
  llvm::DenseMap<Value, Value> arrays;
  llvm::DenseMap<Operation *, Value> exchange; ///< shuffle -> its values
  llvm::DenseMap<Operation *, Value> privateArrays;
  llvm::DenseMap<Operation *, Value> packed; ///< load -> its copy
  llvm::SmallSetVector<Operation *, 16> pending;
  mlir::SmallVector<std::pair<Value, Value>> stores;
  /// The branch whose condition the thread loops take from the row's range.
  mlir::scf::IfOp rowsOf;
  mlir::ArrayRef<Guard> rowsGuards;
  mutable llvm::DenseMap<Operation *, bool> recomputed;
  uint64_t scratchBytes = 0;
};

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_HOST_BLOCKEMITTER_H
