// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attribute #mgpu.attention, and that what has it has such buffers.
#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mgpu::ir;

int64_t AttentionAttr::getBatchSize() const {
  int64_t all = 1;
  for (int64_t size : getBatch())
    all *= size;
  return all;
}

/// Whether the index is a sum of dimensions, each times a constant.
static bool isLinear(AffineExpr index) {
  auto both = dyn_cast<AffineBinaryOpExpr>(index);
  return !both || ((index.getKind() == AffineExprKind::Add ||
                    index.getKind() == AffineExprKind::Mul) &&
                   isLinear(both.getLHS()) && isLinear(both.getRHS()));
}

LogicalResult
AttentionAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      ArrayRef<int64_t> batch, int64_t queries, int64_t keys,
                      int64_t head, int64_t value, ArrayAttr maps,
                      ArrayRef<int64_t> operands) {
  constexpr int64_t most = 1 << 30;
  SmallVector<int64_t> sizes(batch);
  sizes.append({queries, keys, head, value});
  int64_t all = 1;
  for (int64_t size : sizes)
    if (size < 1 || size > most)
      return emitError() << "a size of an attention is " << size
                         << "; sizes are from 1 to 2^30";
  constexpr int64_t mostBatches = 65535; // CUDA's blocks along y
  for (int64_t size : batch)
    if ((all *= size) > mostBatches)
      return emitError() << "an attention has a batch of at most "
                         << mostBatches;
  constexpr size_t buffers = 4;
  if (maps.size() != buffers || !llvm::all_of(maps, [&](Attribute each) {
        auto map = dyn_cast<AffineMapAttr>(each);
        return map && map.getValue().getNumDims() == sizes.size() &&
               map.getValue().getNumSymbols() == 0 &&
               llvm::all_of(map.getValue().getResults(),
                            [](AffineExpr index) { return isLinear(index); });
      }))
    return emitError() << "an attention has maps of Q, K, V and the result, "
                          "each of the batch's dimensions and four more";
  if (!operands.empty() && operands.size() != buffers)
    return emitError() << "an attention has 4 operands, not "
                       << operands.size();
  return success();
}

LogicalResult mgpu::ir::verifyAttention(Operation *op, Attribute attribute) {
  auto attention = dyn_cast<AttentionAttr>(attribute);
  if (!attention)
    return op->emitOpError("has 'mgpu.attention', which is no "
                           "#mgpu.attention");
  auto launch = dyn_cast<LaunchOp>(op);
  auto kernel = dyn_cast<FunctionOpInterface>(op);
  if (!launch && !kernel)
    return op->emitOpError("cannot be an attention: launches and kernels are");
  SmallVector<Type> types;
  if (launch)
    llvm::append_range(types, launch.getArgs().getTypes());
  for (int64_t position : attention.getOperands())
    if (kernel && position >= 0 && position < kernel.getNumArguments())
      types.push_back(kernel.getArgumentTypes()[size_t(position)]);
  const bool fits =
      types.size() == attention.getMaps().size() &&
      llvm::all_of(llvm::enumerate(types), [&](auto each) {
        auto type = dyn_cast<MemRefType>(each.value());
        return type &&
               type.getRank() == attention.getMap(each.index()).getNumResults();
      });
  return fits ? success()
              : op->emitOpError("is an attention, and its arguments are other "
                                "buffers than Q, K, V and the result");
}
