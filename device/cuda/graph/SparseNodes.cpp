// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches of products with sparse matrices that cuSPARSE computes in a
// kernel's place.
#include "device/cuda/graph/CudaGraph.h"

#include <fmt/format.h>

namespace mgpu::device {

Result<std::optional<GraphNodeId>>
CudaGraph::addSparse(const KernelNodeParams &params, const LoadedKernel &kernel,
                     std::span<const GraphNodeId> dependencies) {
  using None = std::optional<GraphNodeId>;
  MGPU_TRY_ASSIGN(SparseProducts * products, state->sparseProducts());
  if (!products)
    return None();
  SparseCall call;
  call.product = *kernel.launch.sparse;
  const kernels::SparseProduct &product = call.product;
  auto address = [&](const kernels::SparseProduct::Operand &operand,
                     ElementType type) {
    return reinterpret_cast<std::byte *>(uintptr_t(
        params.arguments[operand.argument] + operand.offset * sizeBytes(type)));
  };
  call.positions = address(product.positions, product.indices);
  call.index = address(product.index, product.indices);
  call.values = address(product.values, product.factors);
  call.first = address(product.first, product.factors);
  call.second = address(product.second, product.sums);
  MGPU_TRY_ASSIGN(std::optional<uint64_t> bytes,
                  state->sparseBytes(call, params.name));
  if (!bytes) {
    state->warnOnce(fmt::format("cuSPARSE has no way to compute kernel {}: it "
                                "runs in mgpu's own text",
                                kernel.launch.entry));
    return None();
  }
  if (*bytes > 0) {
    MGPU_TRY_ASSIGN(call.buffer, stage(*bytes, "cuSPARSE"));
  }
  Specs after = endsOf(dependencies);
  auto first = uint32_t(spec->nodes.size());
  append(call, std::move(after));
  return None(finish(params.name, params.device, first));
}

} // namespace mgpu::device
