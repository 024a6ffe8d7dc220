// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/CudaEmitter.h"

#include "dialect/mgpu/Diagnostics.h"
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/EntryText.h"
#include "kernels/cuda/FunctionEmitter.h"
#include "kernels/cuda/KeepElements.h"
#include "kernels/cuda/ProductForms.h"
#include "kernels/cuda/StreamedLoads.h"
#include "kernels/cuda/VectorForm.h"
#include "kernels/lower/KernelDialects.h"
#include "kernels/lower/KernelPrepare.h"
#include "kernels/lower/LaneCheck.h"
#include "kernels/lower/LaunchShape.h"
#include "kernels/lower/Normalise.h"
#include "support/BuildId.h"
#include "support/Sha256.h"

#include "mlir/IR/AsmState.h"
#include "llvm/Support/ManagedStatic.h"

using namespace mlir;

namespace mgpu::kernels {

namespace {

using namespace cuda;

bool isEntry(func::FuncOp f) { return f.getName() == "entry"; }

class KernelWriter {
public:
  KernelWriter(ModuleOp module, const CudaEmitOptions &options)
      : module(module), options(options) {}

  Result<CudaKernel> run();

private:
  void findThreadUsers(KernelContext &context);
  void nameFunctions(KernelContext &context);
  LogicalResult writeFunctions(KernelContext &context, Text &out);
  LogicalResult writeParameters(KernelContext &context, func::FuncOp entry);
  /// In each form there is: #if MGPU_VECTOR == 1 ... #else ... #endif.
  LogicalResult
  inEachForm(Text &out, function_ref<LogicalResult(const VectorForm *)> write);
  /// The statements of one thread of the source.
  LogicalResult writeBody(KernelContext &context, Text &body);

  ModuleOp module;
  const CudaEmitOptions &options;
  LaunchShape shape;
  std::optional<VectorForm>
      vectorForm; ///< where MGPU_VECTOR may be more than 1
  CudaKernel kernel;
  func::FuncOp entryOp;
};

void KernelWriter::findThreadUsers(KernelContext &context) {
  auto functions = llvm::to_vector(module.getOps<func::FuncOp>());
  for (bool changed = true; changed;) {
    changed = false;
    for (func::FuncOp f : functions) {
      bool needs =
          f.getName() == "entry" ||
          f.walk([&](Operation *op) {
             bool asks = isa<gpu::GPUDialect>(op->getDialect()) &&
                         !isa<gpu::BarrierOp, gpu::YieldOp>(op);
             if (auto call = dyn_cast<func::CallOp>(op))
               asks = context.needThread.count(
                   module.lookupSymbol(call.getCallee()));
             return asks ? WalkResult::interrupt() : WalkResult::advance();
           }).wasInterrupted();
      if (needs)
        changed |= context.needThread.insert(f).second;
    }
  }
}

LogicalResult KernelWriter::inEachForm(
    Text &out, function_ref<LogicalResult(const VectorForm *)> write) {
  if (!vectorForm)
    return write(nullptr);
  out.raw("#if MGPU_VECTOR == 1\n");
  if (failed(write(nullptr)))
    return failure();
  out.raw("#else\n");
  if (failed(write(&*vectorForm)))
    return failure();
  out.raw("#endif\n");
  return success();
}

LogicalResult KernelWriter::writeParameters(KernelContext &context,
                                            func::FuncOp entry) {
  Text nowhere;
  auto parameters = FunctionEmitter(context, nowhere).parameters(entry);
  if (failed(parameters))
    return failure();
  for (size_t k = 1; k < parameters->size(); ++k) {
    const auto &[type, name] = (*parameters)[k];
    bool isPointer = StringRef(type).contains('*');
    kernel.parameters.push_back(
        {name, type,
         StringRef(type).starts_with("const ") && isPointer &&
             k - 1 < options.unwritten.size() && options.unwritten[k - 1]});
    if (vectorForm)
      kernel.image.argumentAlignment.push_back(isPointer ? options.alignment
                                                         : 1);
    Type mlirType = entry.getArgumentTypes()[k - 1];
    kernel.image.parameterBytes.push_back(
        isPointer ? 8 : std::max(widthOf(mlirType), 8u) / 8);
  }
  for (size_t k = 0; k < context.bulk.maps.size(); ++k) {
    kernel.parameters.push_back(
        {tensorMapName(k), "const __grid_constant__ MgpuTensorMap "});
    kernel.image.parameterBytes.push_back(tensorMapBytes);
  }
  return success();
}

void KernelWriter::nameFunctions(KernelContext &context) {
  Names global;
  for (auto f : module.getOps<func::FuncOp>())
    if (!isEntry(f))
      context.functions[f] =
          global.fresh(kernel.name + "_" + f.getName().str());
}

LogicalResult KernelWriter::writeFunctions(KernelContext &context, Text &out) {
  // They are declared first, as they may call each other.
  SmallVector<func::FuncOp> functions;
  for (auto f : module.getOps<func::FuncOp>())
    if (!isEntry(f))
      functions.push_back(f);
  std::string declarations;
  for (func::FuncOp f : functions) {
    FunctionEmitter emitter(context, out);
    auto signature = emitter.signature(f, context.functions[f]);
    if (failed(signature))
      return failure();
    out.atNowhere();
    declarations += *signature + ";\n";
    out.open(*signature);
    if (failed(emitter.body(f)))
      return failure();
    out.atNowhere();
    out.close();
    out.line("");
  }
  if (functions.size() > 1)
    out.text = declarations + "\n" + out.text;
  return success();
}

LogicalResult KernelWriter::writeBody(KernelContext &context, Text &body) {
  return inEachForm(body, [&](const VectorForm *form) -> LogicalResult {
    FunctionEmitter emitter(context, body, form);
    emitter.setGlobals(kernel.reshapable);
    if (failed(emitter.signature(entryOp, "")) || failed(emitter.body(entryOp)))
      return failure();
    body.atNowhere();
    return success();
  });
}

/// Writes gpu.global_id for what is that.
static void writeGlobalIds(func::FuncOp entry, Dim3 block) {
  SmallVector<std::pair<Operation *, gpu::Dimension>> sums;
  entry.walk([&](Operation *op) {
    if (auto dim = globalIndexOf(op, block))
      sums.push_back({op, *dim});
  });
  for (auto [sum, dim] : sums) {
    OpBuilder b(sum);
    Location loc = sum->getLoc();
    Type type = sum->getResult(0).getType();
    Value id = gpu::GlobalIdOp::create(b, loc, dim);
    if (!type.isIndex())
      id = arith::IndexCastOp::create(b, loc, type, id);
    sum->getResult(0).replaceAllUsesWith(id);
    sum->erase();
  }
}

Result<CudaKernel> KernelWriter::run() {
  kernel.name = kernel.image.entry = Names().fresh(options.name);
  kernel.image.sourceBlock = options.block;
  shape = cuda::launchShapeOf(module, options.block);
  kernel.cluster = shape.cluster;
  kernel.image.cluster = shape.cluster.value_or(Dim3());
  kernel.reshapable = shape.reshapable;
  kernel.reason = shape.reason;
  entryOp = module.lookupSymbol<func::FuncOp>("entry");
  if (auto bytes =
          entryOp->getAttrOfType<IntegerAttr>("mgpu.dynamic_shared_bytes"))
    kernel.image.dynamicSharedBytes = uint32_t(bytes.getInt());
  kernel.vectorReason = vectorRefusal(shape, entryOp, options.block);
  eraseDeadCode(module);
  StagePlan stages = stagePlanOf(entryOp, shape, options.block,
                                 options.maxGrid); // as spaceOf does
  if (stages.empty())
    keepElements(entryOp, options.unwritten, options.block, options.maxGrid);
  if (kernel.reshapable)
    writeGlobalIds(entryOp, options.block);
  eraseDeadCode(module);
  if (kernel.vectorReason.empty())
    vectorForm.emplace(entryOp);
  const facts::IndexRanges ranges(module, options.block, options.maxGrid);
  KernelContext context(options.block, ranges);
  context.bulk = bulkFormOf(entryOp, options.alignment, options.block.volume());
  if (!context.bulk.isEmpty()) {
    kernel.image.tensorMaps = context.bulk.maps;
    kernel.image.hasWarpgroups = !context.bulk.products.empty();
    if (kernel.image.dynamicSharedBytes > 0)
      kernel.image.dynamicSharedBytes += swizzlePattern;
  }
  context.streamed =
      streamedLoads(entryOp, options.unwritten, options.block, options.maxGrid);
  for (const auto &[load, place] : stages.loads)
    context.streamed.erase(load); // of which neighbours come from a tile
  context.stages = std::move(stages);
  for (const StageTile &tile : context.stages.tiles)
    context.helpers.use(tile.isTransposed() ? "stageColumns" : "stageTile");
  findThreadUsers(context);
  nameFunctions(context);
  Text functions, body;
  body.depth = kernel.reshapable ? 3 : 2;
  if (failed(writeParameters(context, entryOp)) ||
      failed(writeFunctions(context, functions)) ||
      failed(writeBody(context, body)))
    return fail(ErrorKind::Unsupported, "");
  kernel.hasUnroll = context.hasUnroll;
  EntryText around(kernel, options);
  around.vectorForm = vectorForm.has_value();
  around.mayLieBeside =
      mayLieBeside(shape, vectorForm.has_value(), options.block);
  around.stages = context.stages.empty() ? nullptr : &context.stages;
  around.usesShared = shape.usesShared;
  around.hasThread = handsOnThread(body.text) || context.needThread.size() > 1;
  for (StringRef field : {"at.block", "at.thread", "at.grid"})
    around.hasThread |= StringRef(body.text).contains(field);
  std::string text = around.header();
  std::string helpers = context.helpers.text();
  text += helpers + (helpers.empty() ? "" : "\n") + bulkHelpers(context.bulk) +
          functions.text;
  if (StringRef(functions.text).contains("#line"))
    text += ownLine.str(); // from here on the text is its own source again
  text += around.entry(body.text);
  kernel.image.blob = withOwnLines(text, kernel.name + ".cu");
  return std::move(kernel);
}

} // namespace

/// Fails, with an error at the operation, where threads meet and not all of
/// them come. Uniformity is known of a prepared kernel.
static LogicalResult checkMeetings(ModuleOp module, func::FuncOp entry,
                                   Dim3 block) {
  bool isNested = false;
  entry.walk([&](Operation *op) {
    isNested |=
        facts::isConvergent(op) && op->getParentOp() != entry.getOperation();
  });
  if (!isNested)
    return success();
  OwningOpRef<ModuleOp> copy = module.clone();
  bool isWrong = false;
  FailureOr<func::FuncOp> prepared = failure();
  { // what the host target lacks is not an error here
    ScopedDiagnosticHandler some(module.getContext(), [&](Diagnostic &error) {
      isWrong |= ir::isProgramError(error);
      return success(!ir::isProgramError(error));
    });
    prepared = prepareKernel(*copy, block, block);
  }
  if (failed(prepared))
    return failure(isWrong);
  return checkBarriers(*prepared);
}

/// Workgroup memory that a kernel declares fits every GPU.
static LogicalResult checkShared(func::FuncOp entry) {
  constexpr int64_t most = 48 * 1024;
  int64_t bytes = 0;
  LogicalResult result = success();
  entry.walk([&](memref::AllocaOp op) {
    bytes += workgroupBytes(op);
    if (bytes > most && succeeded(result))
      result = op.emitOpError("makes ")
               << bytes << " bytes of workgroup memory; GPUs give a kernel "
               << most << ", and more by gpu.dynamic_shared_memory alone";
  });
  return result;
}

/// Clusters are of a size that every GPU with clusters takes.
static LogicalResult checkCluster(func::FuncOp entry) {
  constexpr uint64_t mostBlocks = 8;
  const ir::ClusterAttr cluster = ir::clusterOf(entry);
  const uint64_t blocks =
      cluster ? uint64_t(cluster.getX()) * cluster.getY() * cluster.getZ() : 1;
  if (blocks <= mostBlocks)
    return success();
  return ir::emitUnsupported(entry)
         << "is launched with clusters of " << blocks
         << " blocks, of which not every GPU takes more than " << mostBlocks;
}

std::string entryNameOf(const std::string &name) {
  std::string entry = Names().fresh(name);
  constexpr size_t digits = 8; // hash digits: enough to tell names apart
  return entry == name
             ? entry
             : entry + "_" + Sha256().add(name).hex().substr(0, digits);
}

Result<CudaKernel> emitCudaKernel(ModuleOp module,
                                  const CudaEmitOptions &options) {
  MLIRContext *context = module.getContext();
  DialectRegistry registry;
  registerHostEmitDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadAllAvailableDialects();
  ir::FirstError first(context, ir::FirstError::Others::Miss);
  auto stop = [&](const char *otherwise) {
    return fail(first.error(otherwise));
  };
  if (options.block.volume() == 0 || options.block.volume() > 1024)
    return fail(ErrorKind::Invalid, "a block of " + dims(options.block) +
                                        " threads cannot be launched; use 1 "
                                        "to 1024 threads");
  if (isMatmul(module)) {
    auto product = emitMatmul(module, options);
    if (!product)
      return stop("what is around the product could not be emitted");
    return product;
  }
  if (isAttention(module)) {
    auto attention = emitAttention(module, options);
    if (!attention)
      return stop("the scores of the attention could not be emitted");
    return attention;
  }
  auto entry = module.lookupSymbol<func::FuncOp>("entry");
  if (!entry || entry.isDeclaration() || entry.getNumResults() != 0) {
    module.emitError("a kernel module needs a function @entry that returns "
                     "nothing");
    return stop("no entry");
  }
  if (failed(checkMeetings(module, entry, options.block)) ||
      failed(checkShared(entry)) || failed(checkCluster(entry)))
    return stop("its threads do not all meet, or share too much memory");
  if (failed(normaliseKernel(module, options.block, NvidiaOps::Kept)))
    return stop("the kernel's affine operations could not be lowered");
  auto kernel = KernelWriter(module, options).run();
  if (!kernel)
    return stop("the kernel could not be emitted as CUDA C++");
  return kernel;
}

std::string emitterId() {
  std::string all;
  // Our code is compiled with -fPIC, so these are the functions themselves and
  // no stubs of ours.
  for (const void *function :
       {reinterpret_cast<const void *>(&emitCudaKernel),
        reinterpret_cast<const void *>(&mlir::registerAsmPrinterCLOptions),
        reinterpret_cast<const void *>(&llvm::llvm_shutdown)}) {
    std::string id = buildIdOf(function);
    if (id.empty())
      return "";
    all += (all.empty() ? "" : " ") + id;
  }
  return all;
}

} // namespace mgpu::kernels
