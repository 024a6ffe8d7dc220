// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/host/EntryAbi.h"

#include "kernels/abi/HostKernelAbi.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace mgpu::kernels {

Value AbiReader::launchField(size_t offset, unsigned bits) {
  auto type = b.getIntegerType(bits);
  Value address = LLVM::GEPOp::create(
      b, loc, LLVM::LLVMPointerType::get(b.getContext()), b.getI8Type(), launch,
      ArrayRef<LLVM::GEPArg>{int32_t(offset)});
  Value value = LLVM::LoadOp::create(b, loc, type, address);
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), value);
}

Value AbiReader::argument(unsigned k, Type type) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Value address = LLVM::GEPOp::create(b, loc, pointer, b.getI64Type(), given,
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

LogicalResult AbiReader::arguments(func::FuncOp source,
                                   SmallVectorImpl<Value> &into) {
  for (BlockArgument each : source.getArguments()) {
    into.push_back(argument(each.getArgNumber(), each.getType()));
    if (!into.back())
      return failure();
  }
  return success();
}

/// Exports how the object cuts a launch.
static void exportShape(OpBuilder &b, Location loc, const HostShape &shape) {
  int32_t words[6] = {int32_t(shape.block.x),   int32_t(shape.block.y),
                      int32_t(shape.block.z),   int32_t(shape.covered.x),
                      int32_t(shape.covered.y), int32_t(shape.covered.z)};
  static_assert(sizeof(words) == sizeof(HostKernelShape));
  LLVM::GlobalOp::create(b, loc, LLVM::LLVMArrayType::get(b.getI32Type(), 6),
                         /*isConstant=*/true, LLVM::Linkage::External,
                         hostKernelShapeName, b.getI32TensorAttr(words));
}

func::FuncOp makeEntry(OpBuilder &b, Location loc, const HostShape &shape) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  func::FuncOp::create(b, loc, loopMarker,
                       b.getFunctionType({b.getI32Type()}, {}))
      .setPrivate();
  exportShape(b, loc, shape);
  auto entry = func::FuncOp::create(b, loc, hostKernelEntryName,
                                    b.getFunctionType({pointer, pointer}, {}));
  entry.addEntryBlock();
  return entry;
}

LogicalResult replaceByEntry(
    ModuleOp kernel, const HostShape &shape,
    llvm::function_ref<LogicalResult(func::FuncOp, func::FuncOp)> emit) {
  auto source = kernel.lookupSymbol<func::FuncOp>("entry");
  OpBuilder before(source);
  func::FuncOp entry = makeEntry(before, source.getLoc(), shape);
  if (failed(emit(source, entry)))
    return source.emitOpError("has an argument that the host target lacks");
  for (auto function : llvm::to_vector(kernel.getOps<func::FuncOp>()))
    if (function != entry && function.getName() != loopMarker)
      function.erase();
  return success();
}

Extent partOf(OpBuilder &b, AbiReader &reader) {
  Extent part;
  for (unsigned k = 0; k < 3; ++k) {
    part.begin[k] = reader.launchField(offsetof(HostLaunch, first) + 4 * k, 32);
    part.count[k] = reader.launchField(offsetof(HostLaunch, count) + 4 * k, 32);
  }
  return part;
}

Extent ownBlocks(OpBuilder &b, Location loc, const HostShape &shape,
                 Extent part) {
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
  return part;
}

scf::ForOp makeBlockLoop(OpBuilder &b, Location loc, AbiReader &reader,
                         const Extent &part) {
  Value first = reader.launchField(offsetof(HostLaunch, firstBlock), 64);
  Value last = reader.launchField(offsetof(HostLaunch, lastBlock), 64);
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

} // namespace mgpu::kernels
