// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/host/HostEmitter.h"

#include "dialect/mgpu/Diagnostics.h"
#include "kernels/host/AttentionForm.h"
#include "kernels/host/ErrorBounds.h"
#include "kernels/host/HostCodegen.h"
#include "kernels/host/PackedProduct.h"
#include "kernels/host/SmallFloats.h"
#include "kernels/host/ThreadLoops.h"
#include "kernels/lower/KernelDialects.h"
#include "kernels/lower/KernelPrepare.h"
#include "kernels/lower/LaneCheck.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace mgpu::kernels {

namespace {

/// Escapes it as text of a format.
std::string quoted(StringRef text) {
  std::string result;
  for (char c : text)
    result += c == '%' ? "%%" : std::string(1, c);
  return result;
}

/// The function that a place names; CUDA's word where it names none.
std::string functionAt(Location location) {
  std::string found = "(unknown)";
  location->walk([&](Location inner) {
    auto name = dyn_cast<NameLoc>(inner);
    if (!name)
      return WalkResult::advance();
    found = name.getName().str();
    return WalkResult::interrupt();
  });
  return found;
}

void announce(cf::AssertOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto [file, line] = ir::fileLine(loc);
  const std::string place =
      file.empty() ? "(unknown):0" : file.str() + ":" + std::to_string(line);
  const std::string text =
      quoted(place + ": " + functionAt(loc)) +
      ": block: [%lld,%lld,%lld], thread: [%lld,%lld,%lld] Assertion `" +
      quoted(op.getMsg()) + "` failed.\n";
  Value yes = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
  Value fails = arith::XOrIOp::create(b, loc, op.getArg(), yes);
  auto branch = scf::IfOp::create(b, loc, fails, /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
  SmallVector<Value> ids;
  for (auto axis : {gpu::Dimension::x, gpu::Dimension::y, gpu::Dimension::z})
    ids.push_back(gpu::BlockIdOp::create(b, loc, axis));
  for (auto axis : {gpu::Dimension::x, gpu::Dimension::y, gpu::Dimension::z})
    ids.push_back(gpu::ThreadIdOp::create(b, loc, axis));
  gpu::PrintfOp::create(b, loc, text, ids);
}

/// Has each thread whose assertion fails print what CUDA prints then. The
/// assertions stay behind it and stop the kernel.
void announceAssertions(func::FuncOp kernel) {
  SmallVector<cf::AssertOp> found;
  kernel.walk([&](cf::AssertOp op) { found.push_back(op); });
  for (cf::AssertOp op : found)
    announce(op);
}

} // namespace

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
  shape.makesVectors = !options.boundsErrors;
  shape.vectorBytes = unitOf(options.cpu).bits / 8;
  MGPU_TRY_ASSIGN(const HostCodeOptions code,
                  lowerHostKernel(kernel, block, shape, options));
  MGPU_TRY_ASSIGN(auto object, emitObject(kernel, code));
  return linkSharedObject(object);
}

} // namespace mgpu::kernels
