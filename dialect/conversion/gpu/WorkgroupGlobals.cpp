// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/gpu/BulkOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/AttrTypeSubElements.h"

namespace mgpu::conversion {

using namespace mlir;

void nameMemorySpaces(Operation *kernel) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([](MemRefType type) -> std::optional<Type> {
    auto number = dyn_cast_or_null<IntegerAttr>(type.getMemorySpace());
    if (!number || (number.getInt() != 3 && number.getInt() != 5))
      return std::nullopt;
    auto space = gpu::AddressSpaceAttr::get(
        type.getContext(), number.getInt() == 3 ? gpu::AddressSpace::Workgroup
                                                : gpu::AddressSpace::Private);
    return MemRefType::get(type.getShape(), type.getElementType(),
                           type.getLayout(), space);
  });
  replacer.recursivelyReplaceElementsIn(kernel, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

namespace {

Value dynamicMemory(OpBuilder &b, Location loc, MemRefType type) {
  auto bytes =
      MemRefType::get({ShapedType::kDynamic}, b.getI8Type(),
                      MemRefLayoutAttrInterface(), type.getMemorySpace());
  Value memory = gpu::DynamicSharedMemoryOp::create(b, loc, bytes);
  Value start = arith::ConstantIndexOp::create(b, loc, 0);
  return memref::ViewOp::create(b, loc, type, memory, start, ValueRange());
}

/// A name of dynamic memory, which views of static sizes give its sizes.
void placeDynamic(memref::GetGlobalOp get) {
  for (Operation *user : llvm::make_early_inc_range(get->getUsers())) {
    auto cast = dyn_cast<memref::ReinterpretCastOp>(user);
    if (!cast || !cast.getType().hasStaticShape() ||
        !cast.getType().getLayout().isIdentity())
      continue;
    OpBuilder b(cast);
    cast.replaceAllUsesWith(dynamicMemory(b, cast.getLoc(), cast.getType()));
    cast->erase();
  }
  OpBuilder b(get);
  if (!get->use_empty())
    get.replaceAllUsesWith(dynamicMemory(b, get.getLoc(), get.getType()));
  get->erase();
}

} // namespace

void placeWorkgroupGlobals(ir::LaunchOp launch) {
  SmallVector<memref::GetGlobalOp> found;
  launch.walk([&](memref::GetGlobalOp get) {
    if (gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(get.getType()))
      found.push_back(get);
  });
  llvm::StringMap<Value> buffers;
  for (memref::GetGlobalOp get : found) {
    if (get.getType().hasStaticShape() && get.getType().getNumElements() == 0) {
      placeDynamic(get);
      continue;
    }
    Value &buffer = buffers[get.getName()];
    if (!buffer) {
      OpBuilder b = OpBuilder::atBlockBegin(&launch.getBody().front());
      buffer = memref::AllocaOp::create(b, get.getLoc(), get.getType());
    }
    get.replaceAllUsesWith(buffer);
    get->erase();
  }
}

} // namespace mgpu::conversion
