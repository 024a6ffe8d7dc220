// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/host/HostEmitter.h"

#include "dialect/mgpu/Diagnostics.h"
#include "kernels/host/Assertions.h"
#include "kernels/host/AttentionForm.h"
#include "kernels/host/ErrorBounds.h"
#include "kernels/host/HostCodegen.h"
#include "kernels/host/PackedProduct.h"
#include "kernels/host/SmallFloats.h"
#include "kernels/host/ThreadLoops.h"
#include "kernels/lower/KernelDialects.h"
#include "kernels/lower/KernelPrepare.h"
#include "kernels/lower/LaneCheck.h"

#include "mlir/IR/Verifier.h"

namespace mgpu::kernels {

static host::VectorUnit unitOf(const std::string &cpu) {
  const bool isWide = hasFeature(cpu, "avx512vl");
  return {isWide                    ? 512u
          : hasFeature(cpu, "avx2") ? 256u
                                    : 128u,
          hasFeature(cpu, "fma")};
}

/// No configuration changes an attention's bits: all have its one form.
static Result<HostCodeOptions> lowerAttention(mlir::ModuleOp kernel, Dim3 block,
                                              const AttentionBody &attention,
                                              host::VectorUnit unit,
                                              HostCodeOptions code,
                                              ir::FirstError &first) {
  if (mlir::failed(host::makeAttention(kernel, block, attention, unit)) ||
      mlir::failed(mlir::verify(kernel)) ||
      mlir::failed(lowerToLlvm(kernel, code)))
    return fail(
        first.error("the attention could not be lowered for the host target"));
  code.vectorBits = unit.bits;
  return code;
}

/// The kernel as LLVM's dialect has it, ready for code by the options that are
/// returned.
static Result<HostCodeOptions> lowerHostKernel(mlir::ModuleOp kernel,
                                               Dim3 block,
                                               const HostShape &shape,
                                               const HostEmitOptions &options) {
  constexpr uint64_t maxThreads = 1024;
  if (block.x == 0 || block.y == 0 || block.z == 0 || block.x > maxThreads ||
      block.y > maxThreads || block.z > maxThreads ||
      block.volume() > maxThreads)
    return fail(ErrorKind::Invalid,
                "a block of " + std::to_string(block.x) + "x" +
                    std::to_string(block.y) + "x" + std::to_string(block.z) +
                    " threads cannot be launched; use 1 to 1024 threads");
  mlir::MLIRContext *context = kernel.getContext();
  mlir::DialectRegistry registry;
  registerHostEmitDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadAllAvailableDialects();
  ir::FirstError first(context, ir::FirstError::Others::Miss);
  auto stop = [&](const char *otherwise) {
    return fail(first.error(otherwise));
  };
  const host::VectorUnit unit = unitOf(options.cpu);
  HostCodeOptions code{options.cpu, 0, shape.unroll};
  if (!options.boundsErrors)
    if (const auto attention = attentionForm(kernel))
      return lowerAttention(kernel, block, *attention, unit, code, first);
  if (!unit.hasFma)
    splitSteps(kernel);
  KernelConfig asWritten;
  asWritten[KernelParameter::BlockX] = block.x;
  asWritten[KernelParameter::BlockY] = block.y;
  asWritten[KernelParameter::BlockZ] = block.z;
  const bool isTuned = options.config && *options.config != asWritten;
  if (const auto tiles = isTuned || options.boundsErrors
                             ? std::nullopt
                             : host::packedForm(kernel, unit)) {
    if (mlir::failed(host::makePackedProduct(kernel, block, *tiles)) ||
        mlir::failed(mlir::verify(kernel)) ||
        mlir::failed(lowerToLlvm(kernel, code)))
      return stop("the product could not be lowered for the host target");
    code.vectorBits = unit.bits;
    return code;
  }
  auto source = kernel.lookupSymbol<mlir::func::FuncOp>("entry");
  const unsigned numArguments = source ? source.getNumArguments() : 0;
  if (source && !options.boundsErrors)
    announceAssertions(source);
  mlir::FailureOr<mlir::func::FuncOp> entry =
      prepareKernel(kernel, block, shape.covered);
  if (mlir::failed(entry))
    return stop("the kernel could not be prepared for the host target");
  if (mlir::failed(checkBarriers(*entry)))
    return stop("the kernel has a barrier under divergent control");
  if (mlir::failed(makeThreadLoops(*entry, shape)) ||
      mlir::failed(mlir::verify(kernel)))
    return stop("the kernel could not be turned into loops over threads");
  if (options.boundsErrors &&
      mlir::failed(addErrorBounds(kernel, numArguments)))
    return stop("the kernel's rounding errors cannot be bounded");
  if (mlir::failed(lowerToLlvm(kernel, code)))
    return stop("the kernel could not be lowered for the host target");
  if (options.config)
    code.vectorWidth = (*options.config)[KernelParameter::Vector];
  return code;
}

Result<void> verifyHostKernel(mlir::ModuleOp kernel, Dim3 block) {
  MGPU_TRY(lowerHostKernel(kernel, block, HostShape(block), {}));
  return {};
}

Result<std::vector<std::byte>> emitHostKernel(mlir::ModuleOp kernel, Dim3 block,
                                              const HostEmitOptions &options) {
  HostShape shape =
      options.config ? HostShape(block, *options.config) : HostShape(block);
  shape.copiesByVectors = !options.boundsErrors;
  MGPU_TRY_ASSIGN(const HostCodeOptions code,
                  lowerHostKernel(kernel, block, shape, options));
  MGPU_TRY_ASSIGN(auto object, emitObject(kernel, code));
  return linkSharedObject(object);
}

} // namespace mgpu::kernels
