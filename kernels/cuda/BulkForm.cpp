// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/BulkForm.h"

#include "dialect/mgpu/Instructions.h"
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/FunctionEmitter.h"
#include "kernels/cuda/ProductForms.h"
#include "kernels/cuda/WgmmaHelpers.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

namespace {

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
  std::optional<ElementType> element = libraryType(type.getElementType());
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  constexpr int64_t least = 3, most = 5, longestBox = 256, part = 16;
  if (!argument || argument.getOwner() != &entry.getBody().front() ||
      !element || *element == ElementType::F64 || !type.hasStaticShape() ||
      type.getRank() < 1 || type.getRank() > most ||
      size_t(type.getRank()) != box.size() ||
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

// Barriers in memory, tensor copies and products of warpgroups (BulkForm.h).

/// Statements of the form that has instructions.
void FunctionEmitter::onlyBulk(ArrayRef<std::string> lines) {
  out.raw("#if MGPU_BULK\n");
  for (const std::string &line : lines)
    out.line(line);
  out.raw("#endif\n");
}

/// "&barriers[k]"
std::string FunctionEmitter::barrierAt(Value group, Value index) {
  return "&" + scalars[group] + "[" + use(index) + "]";
}

/// Where the elements of a memref begin.
std::string FunctionEmitter::startOf(Value memref) {
  const Pointer &pointer = pointerOf(memref);
  return pointer.offset.value == 0
             ? pointer.base
             : "(" + pointer.base + " + " + pointer.offset.text + ")";
}

static std::string onlyIf(const std::string &condition,
                          const std::string &statement) {
  return condition.empty() ? statement : "if (" + condition + ") " + statement;
}

void FunctionEmitter::makeBarrier(nvgpu::MBarrierInitOp op) {
  // All threads make it, so one of them does; or those of a branch.
  std::string who;
  if (op.getPredicate())
    who = use(op.getPredicate());
  else if (!op->getParentOfType<scf::IfOp>())
    who = linearThread() + " == 0";
  onlyBulk({onlyIf(who, "makeBarrier(" +
                            barrierAt(op.getBarriers(), op.getMbarId()) +
                            ", (unsigned)" + use(op.getCount()) + ");")});
}

void FunctionEmitter::arrive(nvgpu::MBarrierArriveOp op) {
  const std::string at = barrierAt(op.getBarriers(), op.getMbarId());
  if (op.getToken().use_empty())
    return onlyBulk({"arriveAt(" + at + ");"});
  scalars[op.getToken()] = names.fresh("token");
  onlyBulk({"const unsigned long long " + scalars[op.getToken()] +
            " = arriveForToken(" + at + ");"});
}

/// The operands of a tensor copy: the tile in workgroup memory, the map,
/// `between`, and where the box begins.
std::string FunctionEmitter::tensorCopy(StringRef function, Value descriptor,
                                        Value memory, ValueRange coordinates,
                                        const std::string &between) {
  const size_t number = kernel.bulk.mapOf.lookup(descriptor);
  const TensorMap &map = kernel.bulk.maps[number];
  std::string text = function.str() + "<" + std::to_string(map.swizzleBytes) +
                     ">(" + startOf(memory) + ", &" + tensorMapName(number) +
                     between;
  for (size_t d = 0; d < map.rank(); ++d)
    text += ", " + (d < coordinates.size() ? "(int)" + use(coordinates[d])
                                           : std::string("0"));
  return text + ");";
}

void FunctionEmitter::loadTensor(nvgpu::TmaAsyncLoadOp op) {
  onlyBulk(
      {onlyIf(op.getPredicate() ? use(op.getPredicate()) : "",
              tensorCopy("loadTensor", op.getTensorMapDescriptor(), op.getDst(),
                         op.getCoordinates(),
                         ", " + barrierAt(op.getBarriers(), op.getMbarId())))});
}

void FunctionEmitter::storeTensor(nvgpu::TmaAsyncStoreOp op) {
  onlyBulk({onlyIf(op.getPredicate() ? use(op.getPredicate()) : "",
                   tensorCopy("storeTensor", op.getTensorMapDescriptor(),
                              op.getSrc(), op.getCoordinates(), ""))});
}

void FunctionEmitter::instruction(Operation *op) {
  TypeSwitch<Operation *>(op)
      .Case([&](nvgpu::MBarrierCreateOp create) {
        std::string &name = scalars[create.getBarriers()];
        name = names.fresh("barriers");
        onlyBulk(
            {"static __shared__ __align__(8) unsigned long long " + name + "[" +
             std::to_string(create.getBarriers().getType().getNumBarriers()) +
             "];"});
      })
      .Case([&](nvgpu::MBarrierInitOp init) { makeBarrier(init); })
      .Case([&](nvgpu::MBarrierArriveOp each) { arrive(each); })
      .Case([&](nvgpu::MBarrierArriveExpectTxOp each) {
        onlyBulk({onlyIf(each.getPredicate() ? use(each.getPredicate()) : "",
                         "arriveExpecting(" +
                             barrierAt(each.getBarriers(), each.getMbarId()) +
                             ", (unsigned)" + use(each.getTxcount()) + ");")});
      })
      .Case([&](nvgpu::MBarrierTryWaitParityOp wait) {
        onlyBulk({"awaitPhase(" +
                  barrierAt(wait.getBarriers(), wait.getMbarId()) +
                  ", (unsigned)" + use(wait.getPhaseParity()) + ");"});
      })
      .Case([&](nvgpu::MBarrierTestWaitOp wait) {
        onlyBulk({"awaitToken(" +
                  barrierAt(wait.getBarriers(), wait.getMbarId()) + ", " +
                  scalars[wait.getToken()] + ");"});
      })
      .Case([&](nvgpu::TmaPrefetchOp fetch) {
        onlyBulk({onlyIf(fetch.getPredicate() ? use(fetch.getPredicate()) : "",
                         "prefetchMap(&" +
                             tensorMapName(kernel.bulk.mapOf.lookup(
                                 fetch.getTensorMapDescriptor())) +
                             ");")});
      })
      .Case([&](nvgpu::TmaAsyncLoadOp load) { loadTensor(load); })
      .Case([&](nvgpu::TmaAsyncStoreOp store) { storeTensor(store); });
}

/// The sums of 64 rows are those of one product in 16 steps, four times.
void FunctionEmitter::multiplyWarpgroup(const WarpgroupProduct &product) {
  constexpr int64_t rowsOfTile = 64, steps = 4;
  const std::string a = names.fresh("fromA"), b = names.fresh("fromB"),
                    sums = std::to_string(product.columns / 2);
  out.line("{");
  ++out.depth;
  out.line("const unsigned " + a + " = tileAddress(" + startOf(product.left) +
           "), " + b + " = tileAddress(" + startOf(product.right) + ");");
  const std::string sumsAreHeld =
      "for (int sum = 0; sum < " +
      std::to_string(product.rows / rowsOfTile * product.columns / 2) +
      "; ++sum) holdSum(" + startOf(product.sums) + "[sum]);";
  auto hold = [&] { // else the compiler may move a sum across the fence
    out.raw("#pragma unroll\n");
    out.line(sumsAreHeld);
  };
  hold();
  out.line("beginProducts();");
  for (int64_t tile = 0; tile < product.rows / rowsOfTile; ++tile)
    for (int64_t step = 0; step < steps; ++step)
      out.line(productName(product.type, /*byRows=*/false) + "(*(float (*)[" +
               sums + "])(" + startOf(product.sums) + " + " +
               std::to_string(tile * product.columns / 2) +
               "), tileDescriptor(" + a + " + " +
               std::to_string(tile * 8192 + step * 32) +
               ", 16, 1024), tileDescriptor(" + b + " + " +
               std::to_string(step * 2048) + ", 8192, 1024));");
  out.line("closeProducts();");
  out.line("awaitProducts<0>();");
  hold();
  out.close();
}

LogicalResult FunctionEmitter::statement(Operation *op) {
  const bool isBulk = !kernel.bulk.isEmpty() && !vectorForm;
  if (ir::isInstruction(op)) {
    if (isBulk) {
      out.at(op->getLoc());
      instruction(op);
    }
  } else {
    const bool isMeaning =
        isBulk && ir::isMeaning(op) && !ir::isMeaning(op->getParentOp());
    auto product = kernel.bulk.products.find(op);
    const bool isProduct = isBulk && product != kernel.bulk.products.end();
    if (isMeaning)
      out.raw("#if !MGPU_BULK\n");
    if (isProduct) {
      out.raw("#if MGPU_WARPGROUPS\n");
      multiplyWarpgroup(product->second);
      out.raw("#else\n");
    }
    if (failed(vectorForm && !inPart ? vectorFormOperation(op) : operation(op)))
      return failure();
    if (isMeaning || isProduct)
      out.raw("#endif\n");
  }
  if (isBulk && op == kernel.bulk.lastMaking)
    onlyBulk({"publishBarriers();", "__syncthreads();"});
  return success();
}

} // namespace mgpu::kernels::cuda
