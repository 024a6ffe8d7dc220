// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_FACTS_UNIFORMITY_H
#define MGPU_FACTS_UNIFORMITY_H

// Which values of a kernel its threads agree on: the ids that a value follows
// from, whether one execution serves several threads, and by how much a value
// grows from one thread to the next.

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Region.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>

namespace mgpu::facts {

/// Whether threads of a block wait for each other here, or exchange values.
bool isExchangeWithinBlocks(mlir::Operation *op);
/// Whether `op` makes the threads of a block (or subgroup) meet.
bool isConvergent(mlir::Operation *op);
/// Whether `op` or an operation inside it is convergent; the first such.
mlir::Operation *findConvergent(mlir::Operation *op);
/// Whether `op` is an alloca that each thread has for itself.
bool isPrivateAlloca(mlir::Operation *op);
/// A reduction over all threads of a block, or over those of a whole subgroup:
/// its result is the same for all neighbours.
bool isReductionOfNeighbours(mlir::Operation *op);

/// Thread ids x, y, z, then block ids; an AffineForm's counters of these.
using Ids = std::bitset<6>;
inline Ids threadIds() { return Ids(0b000111); }
inline Ids blockIds() { return Ids(0b111000); }

/// The threads that are compared: those of a block, or neighbours along x of
/// which there are as many as in a vector.
enum class Among : uint8_t { Block, Neighbours };

class Uniformity {
public:
  explicit Uniformity(mlir::Region &kernel);

  /// The ids that a value follows from: by operands, by the control that
  /// chooses it, and by where it was loaded from. Values that threads write to
  /// memory of the launch are not followed.
  Ids idsOf(mlir::Value value) const {
    return Ids((lookup(value) & Facts(0x3f)).to_ulong());
  }
  bool variesAlongX(mlir::Value value) const { return lookup(value).test(0); }
  /// Whether subgroups of a block agree on a value of their own each. None of
  /// the thread's ids says so. `isPartial`: the last one has fewer threads,
  /// whose number the value follows from.
  bool variesBySubgroup(mlir::Value value, bool isPartial) const {
    return lookup(value).test(bySubgroup) ||
           (isPartial && lookup(value).test(ofLanes));
  }

  /// Whether one execution gives the value that each thread would compute.
  bool isUniform(mlir::Value value, Among among = Among::Block) const;
  bool allUniform(mlir::ValueRange values, Among among = Among::Block) const;
  /// Whether executing `op` once for all of them does what executing it by each
  /// thread does: results from uniform operands, without side effects.
  bool isUniformOp(mlir::Operation *op, Among among = Among::Block) const;
  /// Whether all of them take the same way through `op`'s regions (scf.for,
  /// scf.if; among a block's threads scf.while), so that its control may be run
  /// once.
  bool hasUniformControl(mlir::Operation *op, Among among = Among::Block) const;
  /// By how much an integer grows from one thread to the next along x, y and z;
  /// none where it is not linear in the ids, or grows by 2^18 or more. `keeps`
  /// says whether a cast, sum, difference or product is looked through.
  using Strides = std::optional<std::array<int64_t, 3>>;
  Strides stridesOf(mlir::Value value, Among among,
                    llvm::function_ref<bool(mlir::Operation *)> keeps) const {
    KnownStrides known;
    return stridesOf(value, among, keeps, known);
  }

private:
  using KnownStrides = llvm::DenseMap<mlir::Value, Strides>;
  Strides stridesOf(mlir::Value value, Among among,
                    llvm::function_ref<bool(mlir::Operation *)> keeps,
                    KnownStrides &known) const;
  Strides findStrides(mlir::Value value, Among among,
                      llvm::function_ref<bool(mlir::Operation *)> keeps,
                      KnownStrides &known) const;
  /// The ids, then `bySubgroup`, whether neighbours, or threads of a block,
  /// compute the value at times or places of their own, and whether it follows
  /// from the number of a subgroup's threads.
  using Facts = std::bitset<10>;
  static constexpr size_t bySubgroup = 6, apartFromNeighbours = 7,
                          apartInBlock = 8, ofLanes = 9;
  static Facts maskOf(Among among);
  /// The facts of what is computed in every trip of a loop that ends by
  /// `control`.
  static Facts apartBy(Facts control);

  Facts lookup(mlir::Value value) const { return known.lookup(value); }
  Facts join(mlir::ValueRange values) const;
  void add(mlir::ValueRange values, Facts facts);
  void addEach(mlir::ValueRange values, mlir::ValueRange from,
               Facts facts = {});
  void visit(mlir::Operation *op);
  void visitControl(mlir::Operation *op);
  void visitStore(mlir::memref::StoreOp op);
  Facts factsOf(mlir::Operation *op) const;

  llvm::DenseMap<mlir::Value, Facts> known;
  bool changed = false;
};

} // namespace mgpu::facts

#endif // MGPU_FACTS_UNIFORMITY_H
