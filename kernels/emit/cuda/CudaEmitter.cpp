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
  LogicalResult writeParameters(KernelContext &context, func::FuncOp entry);
  /// In each form there is: #if MGPU_VECTOR == 1 ... #else ... #endif.
  LogicalResult inEachForm(Text &out,
                           function_ref<LogicalResult(const LaneForm *)> write);
  /// What one thread of the source does: where the entry is one block, its
  /// statements, else a call of a function that has them.
  LogicalResult writeBody(KernelContext &context, Text &functions, Text &body);
  std::string header();
  std::string entry(const std::string &body);
  std::string ids(const std::string &indent, const std::string &body,
                  bool inLoop);
  bool isInline() { return entryOp.getBody().hasOneBlock(); }

  ModuleOp module;
  const CudaEmitOptions &options;
  LaunchShape shape;
  SmallVector<Axis, 3> axes;     ///< those that are longer than 1, and x
  std::optional<LaneForm> lanes; ///< where MGPU_VECTOR may be more than 1
  CudaKernel kernel;
  func::FuncOp entryOp;
  std::string count; ///< the type that counts threads
  bool hasUnroll = false;
  bool hasThread = false; ///< the text has a MgpuThread
};

/// Stands for a #line that says where the text itself is.
constexpr StringRef ownLine = "#line own\n";

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

LogicalResult
KernelWriter::inEachForm(Text &out,
                         function_ref<LogicalResult(const LaneForm *)> write) {
  if (!lanes)
    return write(nullptr);
  out.raw("#if MGPU_VECTOR == 1\n");
  if (failed(write(nullptr)))
    return failure();
  out.raw("#else\n");
  if (failed(write(&*lanes)))
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
    kernel.parameters.push_back({name, type});
    bool isPointer = StringRef(type).contains('*');
    Type mlirType = entry.getArgumentTypes()[k - 1];
    kernel.parameterBytes.push_back(
        isPointer ? 8 : std::max(widthOf(mlirType), 8u) / 8);
  }
  return success();
}

LogicalResult KernelWriter::writeFunctions(KernelContext &context, Text &out) {
  // They are declared first, as they may call each other.
  Names global;
  SmallVector<func::FuncOp> functions;
  for (auto f : module.getOps<func::FuncOp>())
    if (!isEntry(f))
      functions.push_back(f);
  for (func::FuncOp f : functions)
    context.functions[f] = global.fresh(kernel.name + "_" + f.getName().str());
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

LogicalResult KernelWriter::writeBody(KernelContext &context, Text &functions,
                                      Text &body) {
  if (isInline())
    return inEachForm(body, [&](const LaneForm *form) -> LogicalResult {
      FunctionEmitter emitter(context, body, form);
      emitter.setGlobals(kernel.reshapable);
      if (failed(emitter.signature(entryOp, "")) ||
          failed(emitter.body(entryOp)))
        return failure();
      body.atNowhere();
      return success();
    });
  std::string name = Names().fresh(kernel.name + "_thread"), arguments = "at";
  for (const CudaParameter &each : kernel.parameters)
    arguments += ", " + each.name;
  body.line(name + "(" + arguments + ");");
  return inEachForm(functions, [&](const LaneForm *form) -> LogicalResult {
    FunctionEmitter emitter(context, functions, form);
    auto signature = emitter.signature(entryOp, name);
    if (failed(signature))
      return failure();
    functions.atNowhere();
    functions.open(*signature);
    if (failed(emitter.body(entryOp)))
      return failure();
    functions.atNowhere();
    functions.close();
    functions.line("");
    return success();
  });
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
    text += std::string("//   MGPU_BLOCK_X, _Y, _Z  threads of a block; ") +
            (lanes ? "MGPU_BLOCK_X * MGPU_VECTOR is fixed" : "fixed") +
            ": the kernel\n"
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
    text += std::string("#if MGPU_BLOCK_X") + (lanes ? " * MGPU_VECTOR" : "") +
            " != " + std::to_string(options.block.x) +
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
          "};\n";
  if (hasThread)
    text += "struct MgpuThread { // ids and sizes as the source sees them\n"
            "  int blockX, blockY, blockZ, threadX, threadY, threadZ, gridX, "
            "gridY, gridZ;\n"
            "};\n";
  return text + "\n";
}

/// Whether a function is given `at`: it may ask for anything.
static bool handsOnThread(StringRef body) {
  return body.contains("(at,") || body.contains("(at)");
}

/// Those fields of `at` that `body` asks for, of the ones that are the same for
/// all items or of the others.
std::string KernelWriter::ids(const std::string &indent,
                              const std::string &body, bool inLoop) {
  bool all = handsOnThread(body);
  std::string text;
  auto set = [&](const std::string &field, const std::string &value) {
    if (all || StringRef(body).contains("at." + field))
      text += indent + "at." + field + " = (int)" + value + ";\n";
  };
  for (char upper : {'X', 'Y', 'Z'}) {
    std::string u(1, upper), l(1, char(upper - 'A' + 'a'));
    bool isX = upper == 'X';
    if (!inLoop)
      set("grid" + u, "launch.grid" + u);
    if (kernel.reshapable) {
      if (inLoop != isX)
        continue;
      const Axis *axis = llvm::find_if(
          axes, [&](const Axis &each) { return each.upper == upper; });
      if (axis == axes.end()) {
        set("block" + u, "0");
        set("thread" + u, "0");
        continue;
      }
      std::string size = std::to_string(axis->block);
      set("block" + u, "(global" + u + " / " + size + ")");
      set("thread" + u, "(global" + u + " % " + size + ")");
    } else if (!inLoop) {
      set("thread" + u,
          isX && lanes ? "threadIdx.x * MGPU_VECTOR" : "threadIdx." + l);
      if (!isX)
        set("block" + u, "(launch.base" + u + " + blockIdx." + l +
                             " + launch.first" + u + ")");
    } else if (isX) {
      set("blockX", "sourceX");
    }
  }
  if (!inLoop && hasThread)
    text = indent + "MgpuThread at;\n" + text;
  return text;
}

std::string KernelWriter::entry(const std::string &body) {
  std::string parameters;
  for (const CudaParameter &each : kernel.parameters)
    parameters += each.type + each.name + ", ";
  std::string text =
      "extern \"C\" __global__ void\n"
      "__launch_bounds__(MGPU_BLOCK_X * MGPU_BLOCK_Y * MGPU_BLOCK_Z, "
      "MGPU_MIN_BLOCKS)\n" +
      kernel.name + "(" + parameters + "const MgpuLaunch launch) {\n";
  if (!kernel.reshapable) {
    text += ids("  ", body, /*inLoop=*/false) +
            "  for (unsigned item = 0; item < MGPU_ITEMS; ++item) {\n"
            "    const unsigned sourceX = launch.baseX + (blockIdx.x + "
            "launch.firstX) * MGPU_ITEMS + item;\n"
            "    if (sourceX >= launch.endX) // for all threads alike\n"
            "      break;\n" +
            ids("    ", body, /*inLoop=*/true);
    if (shape.usesShared)
      text += "    if (item > 0)\n      __syncthreads(); // shared memory is "
              "used again\n";
    return text + body + ownLine.str() + "  }\n}\n";
  }
  std::string inside, noAxis, blocks;
  for (char upper : {'Y', 'Z'})
    if (llvm::none_of(axes, [&](const Axis &a) { return a.upper == upper; })) {
      std::string u(1, upper), l(1, char(upper - 'A' + 'a'));
      noAxis += (noAxis.empty() ? "" : " || ") + ("threadIdx." + l + " != 0");
      blocks += (blocks.empty() ? "" : " * ") + ("MGPU_BLOCK_" + u);
    }
  if (!noAxis.empty())
    text +=
        "#if " + blocks + " > 1\n  if (" + noAxis + ")\n    return;\n#endif\n";
  for (const Axis &axis : axes) {
    std::string u(1, axis.upper), size = std::to_string(axis.block);
    // A launch has no more blocks than it takes to cover its grid: where they
    // divide a block of the source, none hangs over.
    std::string unit = "MGPU_BLOCK_" + u;
    if (axis.upper == 'X')
      unit = "(" + unit + " * MGPU_ITEMS * MGPU_VECTOR)";
    if (!inside.empty())
      inside += " && ";
    inside += "(" + size + " % " + unit + " == 0 || global" + u + " < (" +
              count + ")launch.end" + u + " * " + size + ")";
  }
  for (const Axis &axis : llvm::drop_begin(axes)) {
    std::string l(1, axis.letter), u(1, axis.upper),
        size = std::to_string(axis.block);
    text += "  const " + count + " global" + u + " = (" + count +
            ")launch.base" + u + " * " + size + " + (" + count + ")(blockIdx." +
            l + " + launch.first" + u + ") * MGPU_BLOCK_" + u +
            " + threadIdx." + l + ";\n";
  }
  text += ids("  ", body, /*inLoop=*/false);
  std::string size = std::to_string(options.block.x);
  text += "#if MGPU_ITEMS == 1\n"
          "  const unsigned item = 0;\n"
          "  {\n"
          "#else\n"
          "  for (unsigned item = 0; item < MGPU_ITEMS; ++item) {\n"
          "#endif\n"
          "    const " +
          count + " globalX = (" + count + ")launch.baseX * " + size +
          (lanes ? " + (((" : " + ((") + count +
          ")(blockIdx.x + launch.firstX) * MGPU_ITEMS + item) * MGPU_BLOCK_X + "
          "threadIdx.x" +
          (lanes ? ") * MGPU_VECTOR;\n" : ";\n") +
          ids("    ", body, /*inLoop=*/true) + "    if (" + inside + ") {\n" +
          body + ownLine.str() + "    }\n  }\n}\n";
  return text;
}

/// Writes the line numbers that were not known before.
static std::string withOwnLines(const std::string &text,
                                const std::string &file) {
  std::string out;
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at) + 1;
    StringRef line(text.data() + at, end - at);
    ++number;
    out += line == ownLine
               ? "#line " + std::to_string(number + 1) + " \"" + file + "\"\n"
               : line.str();
    at = end;
  }
  return out;
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
  entryOp = module.lookupSymbol<func::FuncOp>("entry");
  if (auto bytes =
          entryOp->getAttrOfType<IntegerAttr>("mgpu.dynamic_shared_bytes"))
    kernel.dynamicSharedBytes = uint32_t(bytes.getInt());
  kernel.vectorReason = vectorRefusal(shape, entryOp, options.block);
  if (kernel.reshapable)
    writeGlobalIds(entryOp, options.block);
  eraseDeadCode(module);
  if (failed(IndexRanges::setBounds(module, options.block, options.maxGrid)))
    return fail(ErrorKind::Unsupported,
                "the launch's sizes could not be written into the kernel");
  if (kernel.vectorReason.empty())
    lanes.emplace(entryOp);
  IndexRanges ranges(module);
  KernelContext context(options.block, ranges);
  findThreadUsers(context);
  Text functions, body;
  body.depth = kernel.reshapable ? 3 : 2;
  if (failed(writeParameters(context, entryOp)) ||
      failed(writeFunctions(context, functions)) ||
      failed(writeBody(context, functions, body)))
    return fail(ErrorKind::Unsupported, "");
  kernel.hasUnroll = hasUnroll = context.hasUnroll;
  hasThread = handsOnThread(body.text) || context.needThread.size() > 1;
  for (StringRef field : {"at.block", "at.thread", "at.grid"})
    hasThread |= StringRef(body.text).contains(field);
  std::string text = header();
  std::string helpers = context.helpers.text();
  text += helpers + (helpers.empty() ? "" : "\n") + functions.text;
  if (StringRef(functions.text).contains("#line"))
    text += ownLine; // from here on the text is its own source again
  text += entry(body.text);
  kernel.source = withOwnLines(text, kernel.name + ".cu");
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
  auto kernel = KernelWriter(module, options).run();
  if (!kernel)
    return stop("the kernel could not be emitted as CUDA C++");
  return kernel;
}

} // namespace mgpu::kernels
