// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/BulkForm.h"

#include "dialect/mgpu/Instructions.h"
#include "kernels/cuda/WgmmaHelpers.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

namespace {

std::optional<ElementType> elementOf(Type type) {
  if (type.isF16())
    return ElementType::F16;
  if (type.isBF16())
    return ElementType::BF16;
  if (type.isF32())
    return ElementType::F32;
  return std::nullopt;
}

uint32_t spanOf(nvgpu::TensorMapSwizzleKind kind) {
  return kind == nvgpu::TensorMapSwizzleKind::SWIZZLE_NONE
             ? 0
             : 16u << unsigned(kind);
}
static_assert(unsigned(nvgpu::TensorMapSwizzleKind::SWIZZLE_32B) == 1 &&
              unsigned(nvgpu::TensorMapSwizzleKind::SWIZZLE_128B) == 3);

class BulkFinder {
public:
  BulkFinder(func::FuncOp entry, uint32_t alignment, uint64_t threads)
      : entry(entry), alignment(alignment), threads(threads) {}

  bool find(); ///< whether all that there is has a form

  BulkForm form;

private:
  Operation *ancestor(Operation *op) {
    return entry.getBody().front().findAncestorOpInBlock(*op);
  }
  bool addMap(UnrealizedConversionCastOp name);
  bool addProduct(scf::ForOp loop);
  bool areMadeFirst(ArrayRef<Operation *> uses);

  func::FuncOp entry;
  uint32_t alignment;
  uint64_t threads;
};

/// The arguments of cuTensorMapEncodeTiled (cuda.h): each dimension steps over
/// those before it.
bool BulkFinder::addMap(UnrealizedConversionCastOp name) {
  Value tensor = name.getOperand(0);
  while (auto cast = tensor.getDefiningOp<memref::CastOp>())
    tensor = cast.getSource();
  auto argument = dyn_cast<BlockArgument>(tensor);
  auto type = cast<MemRefType>(tensor.getType());
  auto map = cast<nvgpu::TensorMapDescriptorType>(name.getResult(0).getType());
  ArrayRef<int64_t> box = map.getTensor().getShape();
  std::optional<ElementType> element = elementOf(type.getElementType());
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  constexpr int64_t least = 3, most = 5, longestBox = 256, part = 16;
  if (!argument || argument.getOwner() != &entry.getBody().front() ||
      !element || !type.hasStaticShape() || type.getRank() < 1 ||
      type.getRank() > most || size_t(type.getRank()) != box.size() ||
      failed(type.getStridesAndOffset(strides, offset)) ||
      ShapedType::isDynamic(offset) || ShapedType::isDynamicShape(strides) ||
      strides.back() != 1)
    return false;
  const int64_t bytes = sizeBytes(*element);
  TensorMap made;
  made.argument = argument.getArgNumber();
  made.offsetBytes = uint64_t(offset * bytes);
  made.type = *element;
  made.isAdded = true;
  made.swizzleBytes = spanOf(map.getSwizzle());
  int64_t spanned = type.getShape().back() * bytes;
  for (int64_t d = 0; d < std::max(type.getRank(), least); ++d) {
    const int64_t dim = type.getRank() - 1 - d;
    made.sizes[size_t(d)] = dim < 0 ? 1 : uint64_t(type.getDimSize(dim));
    made.box[size_t(d)] = dim < 0 ? 1 : uint32_t(box[size_t(dim)]);
    if (made.sizes[size_t(d)] == 0 ||
        (dim >= 0 && box[size_t(dim)] > longestBox))
      return false;
    if (d > 0) { // what is no dimension lies behind all
      const int64_t step =
          dim < 0 ? (spanned + part - 1) / part * part : strides[dim] * bytes;
      if (step < spanned || step % part != 0)
        return false;
      made.strideBytes[size_t(d - 1)] = uint64_t(step);
      spanned += step * int64_t(made.sizes[size_t(d)] - 1);
    }
  }
  if (alignment % part != 0 || made.offsetBytes % part != 0 ||
      made.box[0] * bytes % part != 0)
    return false;
  auto known = llvm::find(form.maps, made);
  form.mapOf[name.getResult(0)] = size_t(known - form.maps.begin());
  if (known == form.maps.end())
    form.maps.push_back(made);
  return true;
}

bool BulkFinder::addProduct(scf::ForOp loop) {
  constexpr int64_t warpgroup = 128, mostColumns = 256, columnsOfPart = 8;
  WarpgroupProduct product{};
  loop.walk([&](memref::LoadOp load) {
    if (!gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(load.getMemRefType()))
      product.sums = load.getMemRef();
    else
      (product.left ? product.right : product.left) = load.getMemRef();
  });
  auto isMatrix = [](Value memref) {
    return memref && cast<MemRefType>(memref.getType()).getRank() == 2;
  };
  if (!product.sums || !isMatrix(product.left) || !isMatrix(product.right) ||
      threads % warpgroup != 0)
    return false;
  for (Operation *around = loop->getParentOp(); around != entry;
       around = around->getParentOp())
    if (!isa<scf::ForOp>(around))
      return false; // all threads of the warpgroup multiply
  auto left = cast<MemRefType>(product.left.getType());
  product.rows = left.getDimSize(0);
  product.columns = cast<MemRefType>(product.right.getType()).getDimSize(1);
  product.type = left.getElementType().isF16() ? "f16" : "bf16";
  if (product.columns > mostColumns || product.columns % columnsOfPart != 0)
    return false;
  form.productForms.insert({product.type, unsigned(product.columns)});
  form.products[loop] = product;
  return true;
}

/// Whether barriers are all made before the first of them is used.
bool BulkFinder::areMadeFirst(ArrayRef<Operation *> uses) {
  return llvm::all_of(uses, [&](Operation *use) {
    Operation *there = ancestor(use);
    return there && form.lastMaking && form.lastMaking->isBeforeInBlock(there);
  });
}

bool BulkFinder::find() {
  SmallVector<Operation *> uses;
  WalkResult result = entry.walk([&](Operation *op) {
    bool fits = true;
    if (isa<nvgpu::MBarrierInitOp>(op)) {
      Operation *there = ancestor(op);
      if (!form.lastMaking || form.lastMaking->isBeforeInBlock(there))
        form.lastMaking = there;
    } else if (auto name = dyn_cast<UnrealizedConversionCastOp>(op)) {
      fits = ir::isInstruction(op) && addMap(name);
    } else if (isa<nvgpu::TmaAsyncStoreOp>(op)) {
      form.stores = true;
    } else if (isa<nvgpu::MBarrierArriveNoCompleteOp>(op)) {
      fits = false;
    } else if (auto wait = dyn_cast<nvgpu::MBarrierTestWaitOp>(op)) {
      fits = bool(wait.getToken().getDefiningOp<nvgpu::MBarrierArriveOp>());
    } else if (auto loop = dyn_cast<scf::ForOp>(op);
               loop && ir::isWarpgroupProduct(loop)) {
      (void)addProduct(loop); // else it is what it means
    }
    for (Value operand : op->getOperands()) // no loop hands a barrier on
      if (isa<nvgpu::MBarrierGroupType>(operand.getType()))
        fits &= bool(operand.getDefiningOp<nvgpu::MBarrierCreateOp>());
    if (ir::isInstruction(op) &&
        !isa<nvgpu::MBarrierCreateOp, nvgpu::MBarrierInitOp,
             nvgpu::TmaPrefetchOp, nvgpu::TmaAsyncStoreOp,
             UnrealizedConversionCastOp>(op))
      uses.push_back(op);
    return fits ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !result.wasInterrupted() && areMadeFirst(uses);
}

} // namespace

BulkForm bulkFormOf(func::FuncOp entry, uint32_t alignment, uint64_t threads) {
  constexpr int64_t mostShared = 227 * 1024; // of a block, from sm_90 on
  BulkFinder finder(entry, alignment, threads);
  auto dynamic = entry->getAttrOfType<IntegerAttr>("mgpu.dynamic_shared_bytes");
  if (!finder.find() ||
      (dynamic && dynamic.getInt() + swizzlePattern > mostShared))
    return BulkForm();
  return std::move(finder.form);
}

std::string bulkHelpers(const BulkForm &form) {
  if (form.isEmpty())
    return "";
  return "// Barriers in memory and tensor copies are instructions from sm_90 "
         "on, products of\n// warpgroups on sm_90a; else the text does what "
         "they mean.\n"
         "#ifdef __CUDACC_RTC__ // each form leaves variables of the other\n"
         "#pragma nv_diag_suppress 177, 550\n#endif\n"
         "#if MGPU_ITEMS == 1 && MGPU_VECTOR == 1 && "
         "defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900\n"
         "#define MGPU_BULK 1\n#else\n#define MGPU_BULK 0\n#endif\n"
         "#if MGPU_BULK && defined(__CUDA_ARCH_FEAT_SM90_ALL)\n"
         "#define MGPU_WARPGROUPS 1\n#else\n#define MGPU_WARPGROUPS 0\n"
         "#endif\n" +
         barrierHelpers(form.productForms);
}

} // namespace mgpu::kernels::cuda
