// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_HOST_ENTRYABI_H
#define MGPU_KERNELS_HOST_ENTRYABI_H

// The function that a host kernel's object exports (abi/HostKernelAbi.h): how
// it reads its arguments and its launch, and its loop over blocks.

#include "kernels/host/ThreadLoops.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

#include <cstddef>

namespace mgpu::kernels {

/// Reads the launch structure and the arguments of the host ABI.
class AbiReader {
public:
  AbiReader(mlir::OpBuilder &b, mlir::func::FuncOp function)
      : b(b), loc(function.getLoc()), given(function.getArgument(0)),
        launch(function.getArgument(1)), converter(b.getContext()) {}

  mlir::Value launchField(size_t offset, unsigned bits);
  /// Argument `k` of the kernel as `type`, or null where that cannot be.
  mlir::Value argument(unsigned k, mlir::Type type);
  /// All arguments of `source`; fails where one cannot be.
  mlir::LogicalResult arguments(mlir::func::FuncOp source,
                                llvm::SmallVectorImpl<mlir::Value> &into);

private:
  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Value given, launch;
  mlir::LLVMTypeConverter converter;
};

/// Declares the marker of loops, exports `shape`, and makes the exported
/// function, empty, before where `b` points.
mlir::func::FuncOp makeEntry(mlir::OpBuilder &b, mlir::Location loc,
                             const HostShape &shape);

/// Puts an entry that `emit` fills in the place of the kernel's functions.
/// Fails, with an error, where it does: for an argument that the target lacks.
mlir::LogicalResult
replaceByEntry(mlir::ModuleOp kernel, const HostShape &shape,
               llvm::function_ref<mlir::LogicalResult(mlir::func::FuncOp source,
                                                      mlir::func::FuncOp entry)>
                   emit);

/// The part of a launch that a call of the object runs, along each axis: in
/// blocks of the source, or in the object's own.
struct Extent {
  mlir::Value begin[3], count[3];
};
/// The part in blocks of the source.
Extent partOf(mlir::OpBuilder &b, AbiReader &reader);
/// The object's own blocks of the part, counted from 0 along axes where they
/// are not the source's.
Extent ownBlocks(mlir::OpBuilder &b, mlir::Location loc, const HostShape &shape,
                 Extent part);
/// A loop over those of the part's blocks that the call runs. It carries their
/// ids: they count along, which spares each block its divisions.
mlir::scf::ForOp makeBlockLoop(mlir::OpBuilder &b, mlir::Location loc,
                               AbiReader &reader, const Extent &part);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_HOST_ENTRYABI_H
