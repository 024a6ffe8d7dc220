// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/gpu/BareProduct.h"

#include "kernels/abi/KernelImage.h"

#include <algorithm>

namespace mgpu::gpu {

/// Memory like that of a launch's argument, with what the program's first
/// argument of that size holds: a product of zeros is a faster one.
static Result<std::byte *> copyOf(const planner::KernelArgument &argument,
                                  Side &side) {
  const planner::Dag &dag = side.program.dag;
  const auto *id = std::get_if<planner::BufferId>(&argument.value);
  if (!id)
    return fail(ErrorKind::Unsupported, "a product's argument is no buffer");
  const uint64_t bytes = dag.buffer(*id).sizeBytes;
  MGPU_TRY_ASSIGN(std::byte * memory, side.driver->allocate({0}, bytes));
  for (const planner::ProgramArgument &each : side.program.arguments) {
    if (!each.buffer || dag.buffer(*each.buffer).sizeBytes != bytes ||
        dag.buffer(*each.buffer).elementType != dag.buffer(*id).elementType)
      continue;
    auto values = side.replayer->hostBuffer(*each.buffer);
    MGPU_TRY(side.driver->transfer(memory, values.data(), values.size()));
    break;
  }
  return memory + argument.offsetBytes;
}

Result<std::unique_ptr<BareProduct>> BareProduct::make(Side &side,
                                                       bench::BareGpu &gpu) {
  const planner::Dag &dag = side.program.dag;
  for (const planner::DagNode &node : dag.nodes) {
    const auto *launch = std::get_if<planner::KernelCall>(&node.work);
    if (!launch)
      continue;
    MGPU_TRY_ASSIGN(
        kernels::KernelImage image,
        kernels::decodeImage(dag.kernels[launch->kernel.value].name,
                             side.prepared.kernels[launch->kernel.value]));
    if (!image.product)
      continue;
    MGPU_TRY_ASSIGN(auto api, device::openCublasLt());
    MGPU_TRY_ASSIGN(auto products,
                    device::Products::open(api, "on GPU 0, without mgpu"));
    std::unique_ptr<BareProduct> made(
        new BareProduct(gpu, std::move(products)));
    device::ProductCall &call = made->call;
    call.product = *image.product;
    std::byte *ends[3] = {};
    for (size_t k = 0; k < 3; ++k) {
      const kernels::MatrixProduct::Matrix &matrix = call.product.matrices[k];
      MGPU_TRY_ASSIGN(std::byte * at,
                      copyOf(launch->arguments[matrix.argument], side));
      ends[k] = at + matrix.offset * sizeBytes(k == 2 ? call.product.sums
                                                      : call.product.factors);
    }
    call.a = ends[0];
    call.b = ends[1];
    call.c = ends[2];
    call.workspaceBytes = image.workspaceBytes;
    MGPU_TRY_ASSIGN(bool isThere, made->products->choose(call, node.name));
    if (!isThere)
      return std::unique_ptr<BareProduct>();
    MGPU_TRY_ASSIGN(
        call.workspace,
        side.driver->allocate({0}, std::max<uint64_t>(call.workspaceBytes, 1)));
    return made;
  }
  return std::unique_ptr<BareProduct>();
}

Result<double> BareProduct::us() {
  return gpu.spanOf([&](CUstream stream) {
    return products->issue(call, call.c, stream, "a bare product");
  });
}

} // namespace mgpu::gpu
