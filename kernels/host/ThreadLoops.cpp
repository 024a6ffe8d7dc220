// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/host/ThreadLoops.h"

#include "dialect/mgpu/Awaits.h"
#include "kernels/host/BlockEmitter.h"
#include "kernels/lower/KernelPrepare.h"

#include "kernels/abi/HostKernelAbi.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cstddef>

using namespace mlir;

namespace mgpu::kernels {

namespace {

/// Reads the launch structure and the arguments of the host ABI.
class AbiReader {
public:
  AbiReader(OpBuilder &b, func::FuncOp function)
      : b(b), loc(function.getLoc()), arguments(function.getArgument(0)),
        launch(function.getArgument(1)), converter(b.getContext()) {}

  Value launchField(size_t offset, unsigned bits) {
    auto type = b.getIntegerType(bits);
    Value address = LLVM::GEPOp::create(
        b, loc, LLVM::LLVMPointerType::get(b.getContext()), b.getI8Type(),
        launch, ArrayRef<LLVM::GEPArg>{int32_t(offset)});
    Value value = LLVM::LoadOp::create(b, loc, type, address);
    return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), value);
  }

  /// Argument `k` of the kernel as `type`, or null where that cannot be.
  Value argument(unsigned k, Type type) {
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    Value address =
        LLVM::GEPOp::create(b, loc, pointer, b.getI64Type(), arguments,
                            ArrayRef<LLVM::GEPArg>{int32_t(k)});
    if (auto memref = dyn_cast<MemRefType>(type)) {
      SmallVector<int64_t> strides;
      int64_t offset;
      if (!memref.hasStaticShape() ||
          failed(memref.getStridesAndOffset(strides, offset)) ||
          ShapedType::isDynamic(offset) ||
          llvm::any_of(strides, ShapedType::isDynamic))
        return {};
      Value base = LLVM::LoadOp::create(b, loc, pointer, address);
      Value descriptor =
          MemRefDescriptor::fromStaticShape(b, loc, converter, memref, base);
      return UnrealizedConversionCastOp::create(b, loc, type, descriptor)
          .getResult(0);
    }
    Value bits = LLVM::LoadOp::create(b, loc, b.getI64Type(), address);
    if (type.isIndex())
      return arith::IndexCastOp::create(b, loc, type, bits);
    if (!type.isIntOrFloat() || type.getIntOrFloatBitWidth() > 64)
      return {};
    unsigned width = type.getIntOrFloatBitWidth();
    if (width < 64)
      bits = arith::TruncIOp::create(b, loc, b.getIntegerType(width), bits);
    return isa<FloatType>(type) ? arith::BitcastOp::create(b, loc, type, bits)
                                : bits;
  }

private:
  OpBuilder &b;
  Location loc;
  Value arguments, launch;
  LLVMTypeConverter converter;
};

} // namespace

HostShape::HostShape(Dim3 block, const KernelConfig &config)
    : block(block), covered(config.block()),
      items(config[KernelParameter::Items]),
      unroll(config[KernelParameter::Unroll]),
      tileX(config[KernelParameter::TileX]),
      tileY(config[KernelParameter::TileY]) {
  covered.x *= items;
}

/// Exports how the object cuts a launch (HostKernelAbi.h).
static void exportShape(OpBuilder &b, Location loc, const HostShape &shape) {
  int32_t words[6] = {int32_t(shape.block.x),   int32_t(shape.block.y),
                      int32_t(shape.block.z),   int32_t(shape.covered.x),
                      int32_t(shape.covered.y), int32_t(shape.covered.z)};
  static_assert(sizeof(words) == sizeof(HostKernelShape));
  LLVM::GlobalOp::create(b, loc, LLVM::LLVMArrayType::get(b.getI32Type(), 6),
                         /*isConstant=*/true, LLVM::Linkage::External,
                         hostKernelShapeName, b.getI32TensorAttr(words));
}

/// Exports that blocks may wait for each other (HostKernelAbi.h).
static void exportAwaits(OpBuilder &b, Location loc) {
  LLVM::GlobalOp::create(b, loc, b.getI32Type(), /*isConstant=*/true,
                         LLVM::Linkage::External, hostKernelAwaitsName,
                         b.getI32IntegerAttr(1));
}

/// The part of a launch that a call of the object runs, along each axis.
struct Extent {
  Value begin[3], count[3];
};

/// Maps the kernel's arguments to what the ABI gives, and those that the launch
/// adds to sizes of the part.
static FailureOr<Extent> mapArguments(OpBuilder &b, func::FuncOp kernel,
                                      AbiReader &reader, IRMapping &uniform) {
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
  Extent part;
  for (unsigned k = 0; k < 3; ++k) {
    uniform.map(kernel.getArgument(numOwn + GridDim + k),
                reader.launchField(offsetof(HostLaunch, grid) + 4 * k, 32));
    part.begin[k] = reader.launchField(offsetof(HostLaunch, first) + 4 * k, 32);
    part.count[k] = reader.launchField(offsetof(HostLaunch, count) + 4 * k, 32);
    uniform.map(kernel.getArgument(numOwn + FirstBlock + k), part.begin[k]);
    uniform.map(kernel.getArgument(numOwn + EndBlock + k),
                arith::AddIOp::create(b, kernel.getLoc(), part.begin[k],
                                      part.count[k]));
  }
  return part;
}

/// The object's own blocks: those of the source, or as KernelPrepare numbers
/// them.
static void countOwnBlocks(OpBuilder &b, Location loc, const HostShape &shape,
                           Extent &part) {
  const uint32_t *block[3] = {&shape.block.x, &shape.block.y, &shape.block.z};
  const uint32_t *covered[3] = {&shape.covered.x, &shape.covered.y,
                                &shape.covered.z};
  for (unsigned k = 0; k < 3; ++k) {
    if (*block[k] == *covered[k])
      continue;
    auto number = [&](uint32_t value) -> Value {
      return arith::ConstantIndexOp::create(b, loc, value);
    };
    Value threads =
        arith::MulIOp::create(b, loc, part.count[k], number(*block[k]));
    part.count[k] =
        arith::CeilDivUIOp::create(b, loc, threads, number(*covered[k]));
    part.begin[k] = number(0);
  }
}

/// A loop from block `first` to `last` of the part, whose ids it carries: they
/// count along, which spares each block its divisions.
static scf::ForOp makeBlockLoop(OpBuilder &b, Location loc, const Extent &part,
                                Value first, Value last) {
  auto [begin, count] = part;
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value line = arith::DivUIOp::create(b, loc, first, count[0]);
  SmallVector<Value> firstIds{arith::RemUIOp::create(b, loc, first, count[0]),
                              arith::RemUIOp::create(b, loc, line, count[1]),
                              arith::DivUIOp::create(b, loc, line, count[1])};
  Value end[2];
  for (unsigned k = 0; k < 3; ++k) {
    firstIds[k] = arith::AddIOp::create(b, loc, begin[k], firstIds[k]);
    if (k < 2)
      end[k] = arith::AddIOp::create(b, loc, begin[k], count[k]);
  }
  auto blocks = scf::ForOp::create(b, loc, first, last, one, firstIds);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(blocks.getBody());
  ValueRange ids = blocks.getRegionIterArgs();
  Value nextX = arith::AddIOp::create(b, loc, ids[0], one);
  Value endOfLine =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, nextX, end[0]);
  Value nextY = arith::AddIOp::create(b, loc, ids[1], one);
  Value endOfPlane = arith::AndIOp::create(
      b, loc, endOfLine,
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, nextY, end[1]));
  Value nextZ = arith::AddIOp::create(b, loc, ids[2], one);
  auto select = [&](Value condition, Value x, Value y) -> Value {
    return arith::SelectOp::create(b, loc, condition, x, y);
  };
  SmallVector<Value> next{
      select(endOfLine, begin[0], nextX),
      select(endOfPlane, begin[1], select(endOfLine, nextY, ids[1])),
      select(endOfPlane, nextZ, ids[2])};
  scf::YieldOp::create(b, loc, next);
  return blocks;
}

LogicalResult makeThreadLoops(func::FuncOp kernel, const HostShape &shape) {
  MLIRContext *context = kernel.getContext();
  Location loc = kernel.getLoc();
  OpBuilder b(kernel);
  auto pointer = LLVM::LLVMPointerType::get(context);
  auto marker = func::FuncOp::create(
      b, loc, loopMarker, FunctionType::get(context, {b.getI32Type()}, {}));
  marker.setPrivate();
  exportShape(b, loc, shape);
  if (ir::awaitsOthers(kernel))
    exportAwaits(b, loc);
  auto function =
      func::FuncOp::create(b, loc, hostKernelEntryName,
                           FunctionType::get(context, {pointer, pointer}, {}));
  Block *body = function.addEntryBlock();
  b.setInsertionPointToStart(body);
  AbiReader reader(b, function);
  IRMapping uniform;
  FailureOr<Extent> part = mapArguments(b, kernel, reader, uniform);
  if (failed(part))
    return failure();
  countOwnBlocks(b, loc, shape, *part);
  Value first = reader.launchField(offsetof(HostLaunch, firstBlock), 64);
  Value last = reader.launchField(offsetof(HostLaunch, lastBlock), 64);
  scf::ForOp blocks = makeBlockLoop(b, loc, *part, first, last);
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
