// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches of matrix products that cuBLASLt computes in a kernel's place.
#include "device/cuda/graph/CudaGraph.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::device {

/// The part of a product that blocks `part` of `block` threads compute, each
/// thread an element of C.
static kernels::MatrixProduct partOf(kernels::MatrixProduct product, Dim3 block,
                                     const GridPart &part) {
  auto cut = [](uint64_t first, uint64_t count, uint64_t threads,
                uint64_t extent) {
    uint64_t begin = std::min(first * threads, extent),
             end = std::min((first + count) * threads, extent);
    return std::pair(begin, end - begin);
  };
  auto [column, columns] = cut(part.first.x, part.count.x, block.x, product.n);
  auto [row, rows] = cut(part.first.y, part.count.y, block.y, product.m);
  auto [first, batch] = cut(part.first.z, part.count.z, block.z, product.batch);
  auto &[a, b, c] = product.matrices;
  a.offset += row * a.rowStride + first * a.batchStride;
  b.offset +=
      column * (product.isTurned ? b.rowStride : 1) + first * b.batchStride;
  c.offset += row * c.rowStride + column + first * c.batchStride;
  product.n = columns;
  product.m = rows;
  product.batch = batch;
  return product;
}

Result<std::optional<GraphNodeId>>
CudaGraph::addProduct(const KernelNodeParams &params,
                      const LoadedKernel &kernel, std::byte *workspace,
                      const GridPart &part,
                      std::span<const GraphNodeId> dependencies) {
  using None = std::optional<GraphNodeId>;
  MGPU_TRY_ASSIGN(Products * products, state->products());
  if (!products)
    return None();
  ProductCall call;
  call.product =
      partOf(*kernel.launch.product, kernel.launch.sourceBlock, part);
  const kernels::MatrixProduct &product = call.product;
  auto address = [&](size_t k, ElementType type) {
    const kernels::MatrixProduct::Matrix &matrix = product.matrices[k];
    return reinterpret_cast<std::byte *>(uintptr_t(
        params.arguments[matrix.argument] + matrix.offset * sizeBytes(type)));
  };
  call.a = address(0, product.factors);
  call.b = address(1, product.factors);
  call.c = address(2, product.sums);
  call.workspace = workspace;
  call.workspaceBytes = kernel.launch.workspaceBytes;
  Specs after = endsOf(dependencies);
  uint32_t first = uint32_t(spec->nodes.size());
  if (product.m == 0 || product.n == 0 || product.batch == 0) {
    join({}, after);
    return None(finish(params.name, params.device, first));
  }
  MGPU_TRY_ASSIGN(bool isThere, state->prepareProduct(call, params.name));
  if (!isThere) {
    state->warnOnce(fmt::format(
        "cuBLASLt has no algorithm for kernel {} ({} x {} x {}, {}): it runs "
        "in mgpu's own text",
        kernel.launch.entry, product.m, product.n, product.k,
        toString(product.factors)));
    return None();
  }
  append(call, std::move(after));
  return None(finish(params.name, params.device, first));
}

// Launches of products with sparse matrices that cuSPARSE computes in a
// kernel's place.

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
