// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/ProductText.h"

#include "kernels/abi/LaunchForm.h"
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/EntryText.h"
#include "kernels/cuda/FunctionEmitter.h"
#include "kernels/cuda/PartText.h"
#include "kernels/lower/Normalise.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

using P = KernelParameter;

KernelSpace tileSpace(const KernelConfig &defaults, Dim3 block, Dim3 maxGrid,
                      std::string reason,
                      const std::vector<planner::KernelTunable> &tunables) {
  KernelSpace space;
  space.target = KernelTarget::Cuda;
  space.block = block;
  space.maxGrid = maxGrid;
  space.reshapable = true;
  space.reason = std::move(reason);
  space.covers = {Formula(P::BlockX) * P::TileX, Formula(P::BlockY) * P::TileY,
                  P::BlockZ};
  space.defaults = defaults;
  space.defaults[P::Vector] = 1;
  space.offerDefaults(space.reason);
  for (const planner::KernelTunable &tunable : tunables)
    space.addTunable(tunable);
  return space;
}

ProductText::ProductText(ModuleOp module, const CudaEmitOptions &options,
                         const KernelSpace &space, StringRef reserved,
                         bool takesMaps)
    // productOf() has found it.
    : entry(module.lookupSymbol<func::FuncOp>("entry")),
      loop(facts::productLoop(entry.getBody())), product(ir::productOf(entry)),
      options(options), space(space), takesMaps(takesMaps) {
  kernel.name = kernel.image.entry = names.fresh(options.name);
  kernel.image.sourceBlock = options.block;
  kernel.reshapable = true;
  kernel.reason = space.reason;
  kernel.vectorReason = "has tiles instead";
  for (StringRef each : llvm::split(reserved, ' '))
    names.reserve(each);
  for (StringRef each : {"batch", "row", "column"})
    names.reserve(each);
  for (BlockArgument argument : entry.getArguments()) {
    StringRef wish = sourceName(argument.getLoc());
    arguments.push_back(names.fresh(wish.empty() ? "x" : wish));
  }
  a = arguments[product.matrixA().getArgument()];
  b = arguments[product.matrixB().getArgument()];
}

bool ProductText::storesPairs() const {
  if (!product.hasC())
    return false;
  const ir::MatrixAttr c = product.matrixC();
  return options.alignment % (2 * widthOf(product.getC()) / 8) == 0 &&
         options.block.x % 2 == 0 && c.getColumnStride() == 1 &&
         c.getRowStride() % 2 == 0 && c.getOffset() % 2 == 0 &&
         c.getBatchStride() % 2 == 0;
}

/// One sum begins, and goes to C. Then two beside each other, inside of C, as
/// one access or as two.
static constexpr const char *sumText =
    R"(#define MGPU_FIRST(row, column) (float)$FIRST$
#define MGPU_STORE(row, column, sum) $STORE$$CTYPE$(sum)$END$
)";
static constexpr const char *firstPair =
    R"(#define MGPU_FIRST_PAIR(row, column, left, right) left = MGPU_FIRST(row, column), right = MGPU_FIRST(row, (column + 1))
)";
static constexpr const char *storePair =
    R"(#define MGPU_STORE_PAIR(row, column, left, right) \
  do { \
    MGPU_STORE(row, column, left); \
    MGPU_STORE(row, (column + 1), right); \
  } while (0)
)";
static constexpr const char *pairText =
    R"(struct __align__(2 * sizeof($CTYPE$)) MgpuPair {
  $CTYPE$ of[2];
};
)";
static constexpr const char *firstWide =
    R"(#define MGPU_FIRST_PAIR(row, column, left, right) \
  do { \
    const MgpuPair before = *(const MgpuPair *)&$FIRST$; \
    left = (float)before.of[0], right = (float)before.of[1]; \
  } while (0)
)";
static constexpr const char *storeWide =
    R"(#define MGPU_STORE_PAIR(row, column, left, right) *(MgpuPair *)&$CAT$ = MgpuPair{{$CTYPE$(left), $CTYPE$(right)}}
)";
/// Copies them as far as they are inside.
static constexpr const char *edgeText =
    R"(#define MGPU_BEGIN_SUMS(row, column, left, right) \
  left = right = 0.0f; \
  if (row < endRow && column + 1 < endColumn) \
    MGPU_FIRST_PAIR(row, column, left, right); \
  else if (row < endRow && column < endColumn) \
    left = MGPU_FIRST(row, column)
#define MGPU_STORE_SUMS(row, column, left, right) \
  if (row < endRow && column + 1 < endColumn) \
    MGPU_STORE_PAIR(row, column, left, right); \
  else if (row < endRow && column < endColumn) \
    MGPU_STORE(row, column, left)
)";

/// Lines of the comment at the top that all products have.
static constexpr const char *commonMacros =
    R"(//   MGPU_MIN_BLOCKS    blocks that must fit one multiprocessor
//   MGPU_PDL           1: may be launched to begin before the kernel it follows
//                      has ended, for which it waits; from sm_90 on
)";
static constexpr const char *partText =
    R"(// A part of them is a launch of fewer blocks from block first on, or of the source's
// blocks base to end.
)";

void ProductText::addParameter(unsigned position, const std::string &type) {
  const bool isFactor = position == product.matrixA().getArgument() ||
                        position == product.matrixB().getArgument();
  Type given = entry.getArgumentTypes()[position];
  kernel.parameters.push_back({arguments[position], type});
  kernel.image.parameterBytes.push_back(isFactor && takesMaps ? tensorMapBytes
                                        : isa<MemRefType>(given)
                                            ? 8
                                            : std::max(widthOf(given), 8u) / 8);
  words["PARAMETERS"] += type + arguments[position] + ", ";
  // Two elements of C are stored together only where that is known to fit.
  kernel.image.argumentAlignment.push_back(
      storesPairs() && position == product.matrixC().getArgument()
          ? options.alignment
          : 1);
  if (isFactor)
    return;
  words["OTHERS"] += type + arguments[position] + ", ";
  words["PASSED"] += arguments[position] + ", ";
}

void ProductText::beginAndStore(const std::string &first) {
  words["CAT"] =
      elementAt(product.matrixC(), arguments[product.matrixC().getArgument()],
                "row", "column");
  words["FIRST"] = first;
  words["STORE"] = words["CAT"] + " = ";
  words["END"] = "";
}

LogicalResult ProductText::prepare() {
  words["NAME"] = kernel.name;
  words["AT"] =
      options.location.empty() ? "" : ": the launch at " + options.location;
  words["A"] = a;
  words["B"] = b;
  words["M"] = std::to_string(product.getM());
  words["N"] = std::to_string(product.getN());
  words["K"] = std::to_string(product.getK());
  words["BATCHES"] = product.getBatch() > 1
                         ? std::to_string(product.getBatch()) + " times "
                         : "";
  words["X"] = std::to_string(options.block.x);
  words["Y"] = std::to_string(options.block.y);
  std::string type = words["TYPE"] = cType(product.getA());
  words["CTYPE"] = cType(product.getC());
  words["LAUNCH"] = launchType;
  words["MACROS"] = commonMacros;
  words["PARTS"] = partText;
  words["FORM"] = launchFormText(kernel.name, {"MGPU_BLOCK_X * MGPU_TILE_X",
                                               "MGPU_BLOCK_Y * MGPU_TILE_Y",
                                               "MGPU_BLOCK_Z"});
  add({{"END_ROW", "launch.endY * $Y$u < $M$u ? (int)launch.endY * $Y$ : $M$"},
       {"END_COLUMN",
        "launch.endX * $X$u < $N$u ? (int)launch.endX * $X$ : $N$"}});
  words["BATCH"] = product.getBatch() > 1
                       ? "(int)(launch.baseZ + blockIdx.z + launch.firstZ)"
                       : "0";
  words["BATCH_LINE"] = product.getBatch() > 1
                            ? "  const int batch = " + words["BATCH"] + ";\n"
                            : "";
  words["AWAITER"] = awaitFunction;
  words["AWAIT"] = awaitCall;
  for (const char *each : {"PARAMETERS", "OTHERS", "PASSED"})
    words[each] = "";
  if (loop) {
    if (failed(prepareAround()))
      return failure();
  } else {
    std::string c = arguments[product.matrixC().getArgument()];
    for (unsigned k = 0; k < arguments.size(); ++k)
      addParameter(k, k == product.matrixC().getArgument()
                          ? words["CTYPE"] + " *"
                      : takesMaps ? "const __grid_constant__ MgpuTensorMap "
                                  : "const " + type + " *");
    words["WHAT"] = c + " += " + a + " * " + b;
    beginAndStore(elementAt(product.matrixC(), c, "row", "column"));
  }
  const bool isWide = storesPairs();
  words["SUMS"] =
      fill(std::string(sumText) + (isWide ? pairText : "") +
               (isWide && !product.getOverwrites() ? firstWide : firstPair) +
               (isWide ? storeWide : storePair) + edgeText,
           words);
  std::string own = helpers.text();
  if (!own.empty() && !functions.empty())
    own += "\n";
  words["HELPERS"] = own + functions;
  return success();
}

void ProductText::add(const Substitutions &own) {
  Substitutions filled;
  for (const auto &[name, text] : own)
    filled[name] = fill(text, words);
  filled.merge(words);
  words = std::move(filled);
}

CudaKernel ProductText::write(const char *head, const char *body) {
  std::string text = fill(head, words);
  auto macro = [&](const std::string &name, uint32_t value) {
    text += macroDefault(name, value);
  };
  const KernelConfig &defaults = space.defaults;
  macro("MGPU_BLOCK_X", defaults[P::BlockX]);
  macro("MGPU_BLOCK_Y", defaults[P::BlockY]);
  macro("MGPU_TILE_X", defaults[P::TileX]);
  macro("MGPU_TILE_Y", defaults[P::TileY]);
  for (size_t k = 0; k < space.tunables().size(); ++k)
    macro(space.tunables()[k].name, defaults.tunables[k]);
  macro("MGPU_BLOCK_Z", 1);
  macro("MGPU_MIN_BLOCKS", 1);
  macro("MGPU_PDL", 0);
  text += fill(body, words);
  kernel.image.blob = functions.empty()
                          ? std::move(text)
                          : withOwnLines(text, kernel.name + ".cu");
  return std::move(kernel);
}

bool addsByFma(func::FuncOp entry, scf::ForOp loop) {
  bool found = false;
  entry->walk([&](scf::ForOp each) {
    if (!loop || each == loop)
      found |= !each.getOps<math::FmaOp>().empty();
  });
  return found;
}

std::string elementAt(ir::MatrixAttr matrix, const std::string &name,
                      const std::string &row, const std::string &column) {
  std::string index;
  auto add = [&](std::string what, int64_t stride) {
    if (StringRef(what).contains(' '))
      what = "(" + what + ")";
    index += (index.empty() ? "" : " + ") + what;
    if (stride != 1)
      index += " * " + std::to_string(stride) + "LL";
  };
  if (matrix.getOffset() != 0)
    add(std::to_string(matrix.getOffset()) + "LL", 1);
  if (matrix.getBatch() > 1)
    add("batch", matrix.getBatchStride());
  add(row, matrix.getRowStride());
  add(column, matrix.getColumnStride());
  return name + "[" + index + "]";
}

std::string overlapRefusal(ir::MatrixAttr matrix, const std::string &name) {
  int64_t extent =
      (matrix.getRows() - 1) * matrix.getRowStride() + matrix.getColumns();
  bool overlap = matrix.getRowStride() < matrix.getColumns() ||
                 matrix.getOffset() < 0 ||
                 (matrix.getBatch() > 1 && matrix.getBatchStride() < extent);
  return overlap ? "rows of " + name + " overlap" : "";
}

// Writes what a kernel computes around its product as two functions of the
// product's text: one begins a sum, the other goes on with it.

/// The function "first" or "last" of what is around the product, and the words
/// that call it. `types` are those of the kernel's arguments that it uses.
LogicalResult ProductText::emitPart(func::FuncOp part, StringRef which,
                                    KernelContext &context, Text &out,
                                    std::vector<std::string> &types) {
  const bool isLast = which == "last", hasBatch = product.getBatch() > 1;
  const std::string name = kernel.name + "_" + which.str(),
                    ids = hasBatch ? "row, column, batch" : "row, column",
                    result = isLast ? "void" : words["CTYPE"];
  auto call = writePart(
      part, {entry, arguments, types}, result + " " + name,
      hasBatch ? "const int globalY, const int globalX, const int globalZ"
               : "const int globalY, const int globalX",
      context, out);
  if (failed(call))
    return failure();
  if (isLast) {
    words["STORE"] = name + "(" + *call;
    words["END"] = ", " + ids + ")";
  } else {
    words["FIRST"] = name + "(" + *call + ids + ")";
  }
  return success();
}

LogicalResult ProductText::prepareAround() {
  OwningOpRef<ModuleOp> around = splitProduct(loop);
  if (failed(normaliseKernel(*around, options.block)))
    return failure();
  eraseDeadCode(*around);
  const facts::IndexRanges ranges(*around, options.block, options.maxGrid);
  KernelContext context(options.block, ranges);
  context.helpers = helpers;
  Text out;
  std::vector<std::string> types(arguments.size());
  if (product.getOverwrites()) {
    types[product.matrixC().getArgument()] = words["CTYPE"] + " *";
    beginAndStore("0");
  }
  for (const char *which : {"first", "last"})
    if (!product.getOverwrites() &&
        failed(emitPart(
            around->lookupSymbol<func::FuncOp>("product." + std::string(which)),
            which, context, out, types)))
      return failure();
  helpers = context.helpers;
  functions = out.text;
  if (StringRef(functions).contains("#line"))
    functions += ownLine.str(); // from here on the text is its own source
  for (unsigned k = 0; k < arguments.size(); ++k) {
    const bool isFactor = k == product.matrixA().getArgument() ||
                          k == product.matrixB().getArgument();
    std::string type = cType(getElementTypeOrSelf(entry.getArgumentTypes()[k]));
    addParameter(
        k, isFactor && takesMaps ? "const __grid_constant__ MgpuTensorMap "
           : isFactor            ? "const " + type + " *"
           : types[k].empty()
               ? "const " + type +
                     (isa<MemRefType>(entry.getArgumentTypes()[k]) ? " *" : " ")
               : types[k]);
  }
  words["WHAT"] = a + " * " + b;
  words["WHAT"] =
      product.getOverwrites()
          ? arguments[product.matrixC().getArgument()] + " = " + words["WHAT"]
          : words["WHAT"] + ", from " + kernel.name + "_first on to " +
                kernel.name + "_last";
  return success();
}

} // namespace mgpu::kernels::cuda
