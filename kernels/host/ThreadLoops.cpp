// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/host/ThreadLoops.h"

#include "dialect/mgpu/Awaits.h"
#include "kernels/host/BlockEmitter.h"
#include "kernels/host/EntryAbi.h"
#include "kernels/lower/KernelPrepare.h"

#include "kernels/abi/HostKernelAbi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace mgpu::kernels {

HostShape::HostShape(Dim3 block, const KernelConfig &config)
    : block(block), covered(config.block()),
      items(config[KernelParameter::Items]),
      unroll(config[KernelParameter::Unroll]),
      tileX(config[KernelParameter::TileX]),
      tileY(config[KernelParameter::TileY]) {
  covered.x *= items;
}

void markLoop(OpBuilder &b, Location loc, LoopMark what) {
  Value mark = arith::ConstantIntOp::create(b, loc, what, 32);
  func::CallOp::create(b, loc, loopMarker, TypeRange(), mark);
}

/// Exports that blocks may wait for each other (HostKernelAbi.h).
static void exportAwaits(OpBuilder &b, Location loc) {
  LLVM::GlobalOp::create(b, loc, b.getI32Type(), /*isConstant=*/true,
                         LLVM::Linkage::External, hostKernelAwaitsName,
                         b.getI32IntegerAttr(1));
}

/// Maps the kernel's arguments to what the ABI gives, and those that the launch
/// adds to sizes of the part.
static LogicalResult mapArguments(OpBuilder &b, func::FuncOp kernel,
                                  AbiReader &reader, const Extent &part,
                                  IRMapping &uniform) {
  const unsigned numOwn = kernel.getNumArguments() - NumLaunchArguments;
  for (unsigned k = 0; k < numOwn; ++k) {
    Type type = kernel.getArgument(k).getType();
    Value value = reader.argument(k, type);
    if (!value)
      return kernel.emitError()
             << "argument " << k << " of the kernel has type " << type
             << "; the host target takes memrefs of static shape and layout "
                "and scalars of at most 64 bits";
    uniform.map(kernel.getArgument(k), value);
  }
  for (unsigned k = 0; k < 3; ++k) {
    uniform.map(kernel.getArgument(numOwn + GridDim + k),
                reader.launchField(offsetof(HostLaunch, grid) + 4 * k, 32));
    uniform.map(kernel.getArgument(numOwn + FirstBlock + k), part.begin[k]);
    uniform.map(kernel.getArgument(numOwn + EndBlock + k),
                arith::AddIOp::create(b, kernel.getLoc(), part.begin[k],
                                      part.count[k]));
  }
  return success();
}

LogicalResult makeThreadLoops(func::FuncOp kernel, const HostShape &shape) {
  Location loc = kernel.getLoc();
  OpBuilder b(kernel);
  func::FuncOp function = makeEntry(b, loc, shape);
  if (ir::awaitsOthers(kernel))
    exportAwaits(b, loc);
  b.setInsertionPointToStart(&function.getBody().front());
  AbiReader reader(b, function);
  IRMapping uniform;
  const Extent part = partOf(b, reader);
  if (failed(mapArguments(b, kernel, reader, part, uniform)))
    return failure();
  scf::ForOp blocks =
      makeBlockLoop(b, loc, reader, ownBlocks(b, loc, shape, part));
  func::ReturnOp::create(b, loc);
  for (auto [k, id] : llvm::enumerate(blocks.getRegionIterArgs()))
    uniform.map(kernel.getArgument(kernel.getNumArguments() -
                                   NumLaunchArguments + BlockId + unsigned(k)),
                id);
  BlockEmitter emitter(kernel, function, shape, std::move(uniform));
  b.setInsertionPoint(blocks.getBody()->getTerminator());
  if (failed(emitter.run(b)))
    return failure();
  kernel.erase();
  return success();
}

} // namespace mgpu::kernels
