// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel's text as a whole: what is above and below the body.
#include "kernels/emit/cuda/CudaEmitter.h"

#include "dialect/mgpu/Diagnostics.h"
#include "kernels/emit/HostDialects.h"
#include "kernels/emit/LaunchShape.h"
#include "kernels/emit/Normalise.h"
#include "kernels/emit/cuda/CudaTypes.h"
#include "kernels/emit/cuda/FunctionEmitter.h"
#include "kernels/emit/cuda/LaneForm.h"
#include "kernels/emit/cuda/Matmul.h"
#include "kernels/emit/cuda/SourceKernel.h"

#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace mgpu::kernels {

namespace {

using namespace cuda;

/// What no statement needs would be a warning of the C++ compiler.
void eraseDeadCode(ModuleOp module) {
  for (bool changed = true; changed;) {
    changed = false;
    module.walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
      if (isOpTriviallyDead(op)) {
        op->erase();
        changed = true;
      }
    });
  }
}

/// One dimension of the launch.
struct Axis {
  char letter;     ///< 'x'
  char upper;      ///< 'X'
  uint64_t block;  ///< threads of the source's block along it
  uint64_t extent; ///< most threads of any launch along it
};

bool isEntry(func::FuncOp f) { return f.getName() == "entry"; }

class KernelWriter {
public:
  KernelWriter(ModuleOp module, const CudaEmitOptions &options)
      : module(module), options(options) {}

  Result<CudaKernel> run();

private:
  void findThreadUsers(KernelContext &context);
  LogicalResult writeFunctions(KernelContext &context, Text &out);
  std::string header();
  std::string entry();
  std::string ids(const std::string &indent);

  ModuleOp module;
  const CudaEmitOptions &options;
  LaunchShape shape;
  SmallVector<Axis, 3> axes;     ///< those that are longer than 1, and x
  std::optional<LaneForm> lanes; ///< where MGPU_VECTOR may be more than 1
  CudaKernel kernel;
  std::string count; ///< the type that counts threads
  bool hasUnroll = false;
  std::string threadFunction; ///< what one thread of the source does
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

LogicalResult KernelWriter::writeFunctions(KernelContext &context, Text &out) {
  // The entry last; the others are declared first, as they may call each other.
  SmallVector<func::FuncOp> functions;
  for (auto f : module.getOps<func::FuncOp>())
    if (f.getName() != "entry")
      functions.push_back(f);
  functions.push_back(module.lookupSymbol<func::FuncOp>("entry"));
  Names global;
  for (func::FuncOp f : functions) {
    std::string name =
        kernel.name + (isEntry(f) ? "_thread" : "_" + f.getName().str());
    context.functions[f] = global.fresh(name);
    if (isEntry(f))
      threadFunction = context.functions[f];
  }
  std::string definitions;
  std::vector<std::string> declarations;
  for (func::FuncOp f : functions) {
    FunctionEmitter emitter(context, out);
    if (isEntry(f)) {
      FunctionEmitter names(context, out);
      auto parameters = names.parameters(f);
      if (failed(parameters))
        return failure();
      for (size_t k = 1; k < parameters->size(); ++k) {
        const auto &[type, name] = (*parameters)[k];
        kernel.parameters.push_back({name, type});
        bool isPointer = StringRef(type).contains('*');
        Type mlirType = f.getArgumentTypes()[k - 1];
        kernel.parameterBytes.push_back(
            isPointer ? 8 : std::max(widthOf(mlirType), 8u) / 8);
      }
    }
    auto write = [&](FunctionEmitter &emitter) -> LogicalResult {
      auto signature = emitter.signature(f, context.functions[f]);
      if (failed(signature))
        return failure();
      out.atNowhere();
      if (declarations.empty() || declarations.back() != *signature)
        declarations.push_back(*signature);
      out.open(*signature);
      if (failed(emitter.body(f)))
        return failure();
      out.atNowhere();
      out.close();
      return success();
    };
    bool hasLanes = isEntry(f) && lanes;
    if (hasLanes)
      out.raw("#if MGPU_VECTOR == 1\n");
    if (failed(write(emitter)))
      return failure();
    if (hasLanes) {
      out.raw("#else\n");
      FunctionEmitter several(context, out, &*lanes);
      if (failed(write(several)))
        return failure();
      out.raw("#endif\n");
    }
    out.line("");
  }
  if (declarations.size() > 2) {
    std::string text;
    for (size_t k = 0; k + 1 < declarations.size(); ++k)
      text += declarations[k] + ";\n";
    out.text = text + "\n" + out.text;
  }
  return success();
}

std::string dims(Dim3 d) {
  return std::to_string(d.x) + " x " + std::to_string(d.y) + " x " +
         std::to_string(d.z);
}

std::string KernelWriter::header() {
  std::string text = "// " + kernel.name;
  if (!options.location.empty())
    text += ": the launch at " + options.location;
  text += ".\n// CUDA C++ that includes nothing, for NVRTC; a block of the "
          "source has " +
          dims(options.block) +
          " threads.\n//\n"
          "// Compile with --fmad=false for the results of the source, bit for "
          "bit;\n"
          "// --fmad=true lets a * b + c be one operation. Macros (-D):\n";
  if (kernel.reshapable)
    text += "//   MGPU_BLOCK_X, _Y, _Z  threads of a block; any: the kernel\n"
            "//                         " +
            kernel.reason +
            "\n"
            "//   MGPU_ITEMS            threads of the source, a block apart "
            "along x, that one\n"
            "//                         thread is\n";
  else
    text += "//   MGPU_BLOCK_X, _Y, _Z  threads of a block; fixed: the kernel\n"
            "//                         " +
            kernel.reason +
            "\n"
            "//   MGPU_ITEMS            blocks of the source, along x, that "
            "one block is\n";
  if (lanes)
    text +=
        "//   MGPU_VECTOR           neighbours along x that one thread is, "
        "computed together\n"
        "//                         and loaded and stored at once where the "
        "address allows;\n"
        "//                         a divisor of " +
        std::to_string(options.block.x) + "\n";
  else
    text += "//   MGPU_VECTOR           1: the kernel " + kernel.vectorReason +
            "\n";
  if (hasUnroll)
    text += "//   MGPU_UNROLL           how often the innermost loops are "
            "unrolled; 0: as the\n"
            "//                         compiler likes\n";
  text += "//   MGPU_MIN_BLOCKS       blocks that must fit one multiprocessor "
          "(__launch_bounds__)\n"
          "//   MGPU_FAST_MATH        1: the fast forms of exp, log, sin, "
          "division, ...\n"
          "// Launch with the grid, in blocks of the source, in `launch`, and "
          "with\n//   ";
  text += kernel.reshapable
              ? "ceil(gridX * " + std::to_string(options.block.x) +
                    " / (MGPU_BLOCK_X * MGPU_ITEMS * MGPU_VECTOR))"
              : "ceil(gridX / MGPU_ITEMS)";
  text += " blocks along x. A part of the grid is a launch of\n// fewer blocks "
          "from block first on, or of the source's blocks base to end.\n";
  auto macro = [&](const std::string &name, const std::string &value) {
    text +=
        "#ifndef " + name + "\n#define " + name + " " + value + "\n#endif\n";
  };
  macro("MGPU_BLOCK_X", std::to_string(options.block.x));
  macro("MGPU_BLOCK_Y", std::to_string(options.block.y));
  macro("MGPU_BLOCK_Z", std::to_string(options.block.z));
  macro("MGPU_ITEMS", "1");
  macro("MGPU_VECTOR", "1");
  if (hasUnroll)
    macro("MGPU_UNROLL", "0");
  macro("MGPU_MIN_BLOCKS", "1");
  macro("MGPU_FAST_MATH", "0");
  if (!kernel.reshapable)
    text += "#if MGPU_BLOCK_X != " + std::to_string(options.block.x) +
            " || MGPU_BLOCK_Y != " + std::to_string(options.block.y) +
            " || MGPU_BLOCK_Z != " + std::to_string(options.block.z) +
            "\n#error \"" + kernel.name + " " + kernel.reason + "\"\n#endif\n";
  if (lanes)
    text += "#if MGPU_VECTOR < 1 || " + std::to_string(options.block.x) +
            " % MGPU_VECTOR != 0\n#error \"MGPU_VECTOR must divide " +
            std::to_string(options.block.x) +
            "\"\n#endif\n"
            "#define MGPU_PARTS _Pragma(\"unroll\") for (int part = 0; part < "
            "MGPU_VECTOR; ++part)\n";
  else
    text += "#if MGPU_VECTOR != 1\n#error \"" + kernel.name + " " +
            kernel.vectorReason + "\"\n#endif\n";
  if (hasUnroll) // a preprocessor may leave macros in pragmas alone
    text += "enum { mgpuUnroll = MGPU_UNROLL };\n";
  text += "\nstruct MgpuLaunch { // the grid of the source, and where this "
          "launch begins\n"
          "  unsigned gridX, gridY, gridZ, firstX, firstY, firstZ;\n"
          "  unsigned baseX, baseY, baseZ, endX, endY, endZ; // of the part "
          "that runs\n"
          "};\n"
          "struct MgpuThread { // ids and sizes as the source sees them\n"
          "  int blockX, blockY, blockZ, threadX, threadY, threadZ, gridX, "
          "gridY, gridZ;\n"
          "};\n\n";
  return text;
}

/// The ids that are the same for all items.
std::string KernelWriter::ids(const std::string &indent) {
  std::string text = indent + "MgpuThread at;\n";
  for (char upper : {'X', 'Y', 'Z'}) {
    std::string d(1, upper);
    text += indent + "at.grid" + d + " = (int)launch.grid" + d + ";\n";
  }
  return text;
}

std::string KernelWriter::entry() {
  std::string parameters, arguments = "at";
  for (const CudaParameter &each : kernel.parameters) {
    parameters += each.type + each.name + ", ";
    arguments += ", " + each.name;
  }
  std::string text =
      "extern \"C\" __global__ void\n"
      "__launch_bounds__(MGPU_BLOCK_X * MGPU_BLOCK_Y * MGPU_BLOCK_Z, "
      "MGPU_MIN_BLOCKS)\n" +
      kernel.name + "(" + parameters + "const MgpuLaunch launch) {\n" +
      ids("  ");
  std::string call = threadFunction + "(" + arguments + ");\n";
  if (!kernel.reshapable) {
    text += "  at.threadX = (int)threadIdx.x;\n"
            "  at.threadY = (int)threadIdx.y;\n"
            "  at.threadZ = (int)threadIdx.z;\n"
            "  at.blockY = (int)(launch.baseY + blockIdx.y + "
            "launch.firstY);\n"
            "  at.blockZ = (int)(launch.baseZ + blockIdx.z + "
            "launch.firstZ);\n"
            "  for (unsigned item = 0; item < MGPU_ITEMS; ++item) {\n"
            "    const unsigned x = launch.baseX + (blockIdx.x + "
            "launch.firstX) * MGPU_ITEMS + item;\n"
            "    if (x >= launch.endX) // for all threads alike\n"
            "      break;\n"
            "    at.blockX = (int)x;\n";
    if (shape.usesShared)
      text += "    if (item > 0)\n      __syncthreads(); // shared memory is "
              "used again\n";
    return text + "    " + call + "  }\n}\n";
  }
  std::string inside;
  for (const Axis &axis : axes) {
    std::string l(1, axis.letter), u(1, axis.upper),
        size = std::to_string(axis.block);
    if (!inside.empty())
      inside += " && ";
    inside += l + " < (" + count + ")launch.end" + u + " * " + size;
  }
  for (const Axis &axis : llvm::drop_begin(axes)) {
    std::string l(1, axis.letter), u(1, axis.upper),
        size = std::to_string(axis.block);
    text += "  const " + count + " " + l + " = (" + count + ")launch.base" + u +
            " * " + size + " + (" + count + ")(blockIdx." + l +
            " + launch.first" + u + ") * MGPU_BLOCK_" + u + " + threadIdx." +
            l + ";\n  at.block" + u + " = (int)(" + l + " / " + size +
            ");\n  at.thread" + u + " = (int)(" + l + " % " + size + ");\n";
  }
  for (char upper : {'Y', 'Z'})
    if (llvm::none_of(axes, [&](const Axis &a) { return a.upper == upper; })) {
      inside +=
          std::string(" && threadIdx.") + char(upper - 'A' + 'a') + " == 0";
      text += "  at.block" + std::string(1, upper) + " = at.thread" +
              std::string(1, upper) + " = 0;\n";
    }
  std::string size = std::to_string(options.block.x);
  text += "  for (unsigned item = 0; item < MGPU_ITEMS; ++item) {\n"
          "    const " +
          count + " x = (" + count + ")launch.baseX * " + size +
          (lanes ? " + (((" : " + ((") + count +
          ")(blockIdx.x + launch.firstX) * MGPU_ITEMS + item) * MGPU_BLOCK_X + "
          "threadIdx.x" +
          (lanes ? ") * MGPU_VECTOR;\n" : ";\n") +
          "    at.blockX = (int)(x / " + size +
          ");\n    at.threadX = (int)(x % " + size +
          ");\n"
          "    if (" +
          inside + ")\n      " + call + "  }\n}\n";
  return text;
}

Result<CudaKernel> KernelWriter::run() {
  kernel.name = kernel.entry = Names().fresh(options.name);
  kernel.block = options.block;
  auto add = [&](char letter, uint64_t block, uint64_t grid) {
    if (letter == 'x' || block * grid > 1)
      axes.push_back({letter, char(letter - 'a' + 'A'), block, block * grid});
  };
  add('x', options.block.x, options.maxGrid.x);
  add('y', options.block.y, options.maxGrid.y);
  add('z', options.block.z, options.maxGrid.z);
  // With room for a last block of any size and items that is not full.
  count = llvm::all_of(axes, [](const Axis &a) { return a.extent < 1u << 30; })
              ? "unsigned"
              : "unsigned long long";
  shape = launchShapeOf(module, options.block);
  kernel.reshapable = shape.reshapable;
  kernel.reason = shape.reason;
  auto entryOp = module.lookupSymbol<func::FuncOp>("entry");
  if (auto bytes =
          entryOp->getAttrOfType<IntegerAttr>("mgpu.dynamic_shared_bytes"))
    kernel.dynamicSharedBytes = uint32_t(bytes.getInt());
  kernel.vectorReason = vectorRefusal(shape, entryOp, options.block);
  if (kernel.vectorReason.empty())
    lanes.emplace(entryOp);
  IndexRanges ranges(module);
  KernelContext context(options.block, ranges);
  findThreadUsers(context);
  Text body;
  if (failed(writeFunctions(context, body)))
    return fail(ErrorKind::Unsupported, "");
  hasUnroll = context.hasUnroll;
  kernel.hasUnroll = hasUnroll;
  std::string text = header();
  std::string helpers = context.helpers.text();
  text += helpers + (helpers.empty() ? "" : "\n") + body.text;
  // From here on the text is its own source again.
  text += "#line " + std::to_string(llvm::count(text, '\n') + 2) + " \"" +
          kernel.name + ".cu\"\n" + entry();
  kernel.source = std::move(text);
  return std::move(kernel);
}

} // namespace

Result<CudaKernel> emitCudaKernel(ModuleOp module,
                                  const CudaEmitOptions &options) {
  MLIRContext *context = module.getContext();
  DialectRegistry registry;
  registerHostEmitDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadAllAvailableDialects();
  ir::FirstError error(context);
  auto stop = [&](const char *otherwise) {
    return fail(ErrorKind::Unsupported,
                error.message.empty() ? otherwise : error.message);
  };
  if (options.block.volume() == 0 || options.block.volume() > 1024)
    return fail(ErrorKind::Invalid, "a block of " + dims(options.block) +
                                        " threads cannot be launched; use 1 "
                                        "to 1024 threads");
  if (isSourceKernel(module))
    return emitSourceKernel(module, options);
  if (isMatmul(module))
    return emitMatmul(module, options);
  auto entry = module.lookupSymbol<func::FuncOp>("entry");
  if (!entry || entry.isDeclaration() || entry.getNumResults() != 0) {
    module.emitError("a kernel module needs a function @entry that returns "
                     "nothing");
    return stop("no entry");
  }
  if (failed(normaliseKernel(module, options.block)))
    return stop("the kernel's affine operations could not be lowered");
  eraseDeadCode(module);
  if (failed(IndexRanges::setBounds(module, options.block, options.maxGrid)))
    return stop("the launch's sizes could not be written into the kernel");
  auto kernel = KernelWriter(module, options).run();
  if (!kernel)
    return stop("the kernel could not be emitted as CUDA C++");
  return kernel;
}

} // namespace mgpu::kernels
