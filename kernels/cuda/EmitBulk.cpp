// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Barriers in memory, tensor copies and products of warpgroups (BulkForm.h).
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/FunctionEmitter.h"
#include "kernels/cuda/WgmmaHelpers.h"

#include "dialect/mgpu/Instructions.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

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
