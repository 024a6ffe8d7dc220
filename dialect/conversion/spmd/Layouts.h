// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SPMD_LAYOUTS_H
#define MGPU_DIALECT_CONVERSION_SPMD_LAYOUTS_H

// The layout of each value of a program over whole tensors.

#include "dialect/conversion/spmd/FactorRule.h"
#include "dialect/conversion/spmd/Reshard.h"
#include "dialect/spmd/SpmdDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace mgpu::conversion {

/// Takes the layouts that the program asks for, and finds those of all other
/// values: an operation cuts the dimensions of one factor alike, forward and
/// backward, until nothing changes. Layouts that the program asks for do not
/// change; those of a later priority begin where the earlier ones have ended.
/// Where two tensors of an operation want the same axis, the one is taken that
/// makes devices receive the fewest bytes. Values of an spmd.same_layout have
/// one layout. Code of devices (PartitionTensors.cpp) has whole tensors.
class Layouts {
public:
  /// `mesh` is that of the layouts in `function`.
  Layouts(mlir::func::FuncOp function, llvm::ArrayRef<int64_t> mesh,
          llvm::DenseSet<mlir::Operation *> deviceCode);

  /// The layout of `value`, a ranked tensor; whole on each device where nothing
  /// says otherwise.
  spmd::LayoutAttr of(mlir::Value value) const;

  /// The axes that cut each factor of an operation, and the bytes that devices
  /// receive for that.
  struct Way {
    llvm::SmallVector<Cut> cuts;
    int64_t bytes = 0;
  };
  /// The ways in which each tensor decides before the others, and those that
  /// leave a sum whole which takes axes from a result; that of the fewest bytes
  /// first. There is one where no two tensors want an axis for themselves.
  llvm::SmallVector<Way> waysOf(const FactorRule &rule) const;

  /// The layout of a tensor of the rule where factors are cut so.
  spmd::LayoutAttr layoutOf(const FactorTensor &tensor, const FactorRule &rule,
                            llvm::ArrayRef<Cut> cuts) const;

  /// Whether each device computes `op` by itself, on whole tensors.
  bool isDeviceCode(mlir::Operation *op) const {
    return deviceCode.contains(op);
  }

  llvm::ArrayRef<int64_t> getMesh() const { return mesh; }

private:
  /// A layout that the program asks for. Dimension k of it holds from the
  /// round priorities[k] on, or from the first.
  struct Given {
    mlir::Value value;
    spmd::LayoutAttr layout;
    llvm::ArrayRef<int64_t> open, priorities;
    int64_t priorityOf(unsigned dim) const {
      return priorities.empty() ? 0 : priorities[dim];
    }
  };
  void takeGroups(mlir::func::FuncOp function);
  llvm::SmallVector<Given> givenIn(mlir::func::FuncOp function) const;
  void take(const Given &asked, int64_t round);
  void propagate();
  void collectRules(mlir::Operation *op);
  bool apply(const FactorRule &rule);
  bool refine(const FactorTensor &tensor, const FactorRule &rule,
              llvm::ArrayRef<Cut> cuts);
  void addCuts(const FactorRule &rule, const FactorTensor &tensor,
               llvm::SmallVectorImpl<Cut> &cuts) const;
  void addWhole(const Factor &factor, const Window *window, const Cut &cut,
                int64_t size, unsigned index,
                llvm::SmallVectorImpl<Cut> &cuts) const;
  void keepLegal(const FactorRule &rule,
                 llvm::SmallVectorImpl<Cut> &cuts) const;
  llvm::SmallVector<Cut>
  cutsBy(const FactorRule &rule,
         llvm::ArrayRef<const FactorTensor *> tensors) const;
  bool keepsOthersFrom(const FactorRule &rule, llvm::ArrayRef<Cut> cuts,
                       unsigned factor) const;
  int64_t costOf(const FactorRule &rule, llvm::ArrayRef<Cut> cuts) const;
  static bool isUsed(llvm::ArrayRef<Cut> cuts, int64_t axis);

  /// The value under which the layout of `value` is kept.
  mlir::Value key(mlir::Value value) const {
    mlir::Value leader = groups.lookup(value);
    return leader ? leader : value;
  }
  /// Null where nothing says it so far.
  spmd::LayoutAttr given(mlir::Value value) const {
    return layouts.lookup(key(value));
  }

  llvm::SmallVector<int64_t> mesh;
  llvm::DenseMap<mlir::Value, spmd::LayoutAttr> layouts;
  /// Values whose layout the program asks for, and the dimensions that may be
  /// cut further.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<int64_t>> open;
  llvm::SmallVector<FactorRule, 0> rules;
  llvm::DenseMap<mlir::Value, mlir::Value> groups; ///< the first of each group
  llvm::DenseSet<mlir::Operation *> deviceCode;
  mutable Reshards reshards; ///< by the bytes that devices receive
};

/// The mesh of the layouts that `function` asks for in its arguments, its
/// results and its layout constraints; empty where there are none. Fails where
/// two differ.
mlir::FailureOr<llvm::SmallVector<int64_t>> meshOf(mlir::func::FuncOp function);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SPMD_LAYOUTS_H
