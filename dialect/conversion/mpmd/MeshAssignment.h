// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_MPMD_MESHASSIGNMENT_H
#define MGPU_DIALECT_CONVERSION_MPMD_MESHASSIGNMENT_H

// Gives each operation of a program over several meshes one of them.

#include "dialect/mpmd/MpmdDialect.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace mgpu::conversion {

/// The values from outside that `op` and its bodies use.
llvm::SetVector<mlir::Value> usedBy(mlir::Operation *op);

/// Rewrites a function with a topology: afterwards it has fragments and
/// transfers alone, and its arguments and results are on meshes.
///
/// Named computations run on the mesh that `meshes` has for their name, and
/// fragments on their own. Any other operation, and a named computation without
/// a mesh, runs where its operands are, if that is one mesh; else on the first
/// mesh that asks for its result. An argument is on the first mesh that asks
/// for it.
class MeshAssignment {
public:
  MeshAssignment(mlir::func::FuncOp function, mpmd::TopologyAttr topology,
                 const llvm::StringMap<std::string> &meshes)
      : function(function), topology(topology), meshes(meshes),
        b(function.getContext()) {}
  mlir::LogicalResult run();

private:
  using Operations = llvm::SetVector<mlir::Operation *>;

  void takeArguments(mlir::Block &old, mlir::Block &body);
  mlir::LogicalResult take(mlir::Operation *op);
  mlir::LogicalResult takeNamed(mpmd::NamedComputationOp op);
  mlir::LogicalResult refuseNamed(mpmd::NamedComputationOp op);
  void takeAssigned(mlir::Operation *op);
  mlir::LogicalResult giveResults(mlir::Operation *end);
  mlir::Type resultType(unsigned k, mlir::Value made);

  /// `value` as a tensor on `mesh`.
  mlir::Value demand(mlir::Value value, llvm::StringRef mesh);
  void place(mlir::Value value, llvm::StringRef mesh, mlir::Value made);
  mlir::Value sourceOf(mlir::Value value) const;
  /// The mesh where `value` is or will be; empty where that is open.
  llvm::StringRef homeOf(mlir::Value value);
  void collect(mlir::Operation *op, llvm::StringRef mesh, Operations &ops);
  void emitNamed(mpmd::NamedComputationOp op, llvm::StringRef mesh);
  void emitInferred(mlir::Operation *op, llvm::StringRef mesh);
  void emitBody(mlir::Operation *op, mlir::IRMapping &map);
  mlir::Type saidType(llvm::StringRef mesh, mlir::RankedTensorType type,
                      mlir::Attribute sharding, mlir::Attribute memory) const;
  mlir::Type typeOn(llvm::StringRef mesh, mlir::Value value) const;
  bool isOpen(mlir::Operation *op) const;

  mlir::func::FuncOp function;
  mpmd::TopologyAttr topology;
  const llvm::StringMap<std::string> &meshes;
  mlir::OpBuilder b;
  bool isGuess =
      false; ///< whether nothing says the mesh that demand() is given
  mpmd::NamedComputationOp guessed;              ///< that got such a mesh
  llvm::DenseMap<mlir::Value, mlir::Value> same; ///< what computes nothing
  llvm::DenseMap<mlir::Value, llvm::StringRef> homes;
  llvm::DenseMap<std::pair<mlir::Value, llvm::StringRef>, mlir::Value> placed;
};

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_MPMD_MESHASSIGNMENT_H
