// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/ProductText.h"

#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/EntryText.h"
#include "kernels/cuda/FunctionEmitter.h"
#include "kernels/cuda/ProductBody.h"
#include "kernels/lower/Normalise.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

using P = planner::KernelParameter;

planner::KernelSpace
tileSpace(const planner::KernelConfig &defaults, Dim3 block, Dim3 maxGrid,
          std::string reason,
          const std::vector<planner::KernelTunable> &tunables) {
  planner::KernelSpace space;
  space.target = planner::KernelTarget::Cuda;
  space.block = block;
  space.maxGrid = maxGrid;
  space.reshapable = true;
  space.reason = std::move(reason);
  space.covers = {planner::Formula(P::BlockX) * P::TileX,
                  planner::Formula(P::BlockY) * P::TileY, P::BlockZ};
  space.defaults = defaults;
  space.defaults[P::Vector] = 1;
  space.offerDefaults(space.reason);
  for (const planner::KernelTunable &tunable : tunables)
    space.addTunable(tunable);
  return space;
}

ProductText::ProductText(ModuleOp module, const CudaEmitOptions &options,
                         const planner::KernelSpace &space, StringRef reserved,
                         bool takesMaps)
    : product(*matmulShapeOf(module)), options(options), space(space),
      takesMaps(takesMaps) {
  kernel.name = kernel.image.entry = names.fresh(options.name);
  kernel.image.sourceBlock = options.block;
  kernel.reshapable = true;
  kernel.reason = space.reason;
  kernel.vectorReason = "has tiles instead";
  for (StringRef each : llvm::split(reserved, ' '))
    names.reserve(each);
  for (StringRef each : {"batch", "row", "column"})
    names.reserve(each);
  for (BlockArgument argument : product.entry.getArguments()) {
    StringRef wish = sourceName(argument.getLoc());
    arguments.push_back(names.fresh(wish.empty() ? "x" : wish));
  }
  a = arguments[product.a.position];
  b = arguments[product.b.position];
}

bool ProductText::storesPairs() const {
  const MatmulOperand &c = product.c;
  const bool isWhole = !product.loop || product.overwrites;
  return isWhole && options.alignment % (2 * widthOf(c.element) / 8) == 0 &&
         options.block.x % 2 == 0 && c.columnStride == 1 &&
         c.rowStride % 2 == 0 && c.offset % 2 == 0 && c.batchStride % 2 == 0;
}

/// How sums begin and where they go: one element, or two beside each other.
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
/// The same as one access.
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

void ProductText::addParameter(unsigned position, const std::string &type) {
  const bool isFactor =
      position == product.a.position || position == product.b.position;
  Type given = product.entry.getArgumentTypes()[position];
  kernel.parameters.push_back({arguments[position], type});
  kernel.image.parameterBytes.push_back(isFactor && takesMaps ? tensorMapBytes
                                        : isa<MemRefType>(given)
                                            ? 8
                                            : std::max(widthOf(given), 8u) / 8);
  words["PARAMETERS"] += type + arguments[position] + ", ";
  // Two elements of C are stored together only where that is known to fit.
  kernel.image.argumentAlignment.push_back(
      position == product.c.position && storesPairs() ? options.alignment : 1);
  if (isFactor)
    return;
  words["OTHERS"] += type + arguments[position] + ", ";
  words["PASSED"] += arguments[position] + ", ";
}

/// Unused arguments go; the positions of the others.
static SmallVector<unsigned> dropUnused(func::FuncOp part, unsigned count) {
  SmallVector<unsigned> kept;
  llvm::BitVector unused(part.getNumArguments());
  for (unsigned k = 0; k < count; ++k)
    if (part.getArgument(k).use_empty())
      unused.set(k);
    else
      kept.push_back(k);
  (void)part.eraseArguments(unused);
  return kept;
}

/// The function "first" or "last" of what is around the product, and the words
/// that call it. `types` are those of the kernel's arguments that it uses.
LogicalResult ProductText::emitPart(func::FuncOp part, StringRef which,
                                    KernelContext &context, Text &out,
                                    std::vector<std::string> &types) {
  const bool isLast = which == "last", hasBatch = product.c.batch > 1;
  SmallVector<unsigned> kept = dropUnused(part, unsigned(arguments.size()));
  FunctionEmitter emitter(context, out);
  emitter.setGlobals(true);
  auto parameters = emitter.parameters(part);
  if (failed(parameters))
    return failure();
  if (parameters->size() != kept.size() + isLast)
    return part.emitOpError("has an argument that is not a single value");
  std::string list, call;
  for (auto [k, position] : llvm::enumerate(kept)) {
    const auto &[type, name] = (*parameters)[k];
    list += type + name + ", ";
    // The function is given the first element.
    auto memref =
        dyn_cast<MemRefType>(product.entry.getArgumentTypes()[position]);
    SmallVector<int64_t> strides;
    int64_t offset = 0;
    if (memref)
      (void)memref.getStridesAndOffset(strides, offset);
    call += arguments[position] +
            (offset ? " + " + std::to_string(offset) + "LL" : "") + ", ";
    if (types[position].empty() || !memref ||
        !StringRef(type).starts_with("const "))
      types[position] = type;
  }
  const std::string name = kernel.name + "_" + which.str(),
                    ids = hasBatch ? "row, column, batch" : "row, column";
  if (isLast) {
    const auto &sum = (*parameters)[kept.size()];
    list += sum.type + sum.name + ", ";
    words["STORE"] = name + "(" + call;
    words["END"] = ", " + ids + ")";
  } else {
    words["FIRST"] = name + "(" + call + ids + ")";
  }
  out.atNowhere();
  out.open("static __device__ __forceinline__ " +
           (isLast ? "void" : words["CTYPE"]) + " " + name + "(" + list +
           "const int globalY, const int globalX" +
           (hasBatch ? ", const int globalZ" : "") + ")");
  if (failed(emitter.body(part)))
    return failure();
  out.atNowhere();
  out.close();
  out.line("");
  return success();
}

LogicalResult ProductText::prepareAround() {
  OwningOpRef<ModuleOp> around = splitProduct(product.loop);
  if (failed(normaliseKernel(*around, options.block)))
    return failure();
  eraseDeadCode(*around);
  if (failed(IndexRanges::setBounds(*around, options.block, options.maxGrid)))
    return failure();
  IndexRanges ranges(*around);
  KernelContext context(options.block, ranges);
  context.helpers = helpers;
  Text out;
  std::vector<std::string> types(arguments.size());
  if (product.overwrites) {
    types[product.c.position] = words["CTYPE"] + " *";
    beginAndStore("0");
  }
  for (const char *which : {"first", "last"})
    if (!product.overwrites &&
        failed(emitPart(
            around->lookupSymbol<func::FuncOp>("product." + std::string(which)),
            which, context, out, types)))
      return failure();
  helpers = context.helpers;
  functions = out.text;
  if (StringRef(functions).contains("#line"))
    functions += ownLine.str(); // from here on the text is its own source
  for (unsigned k = 0; k < arguments.size(); ++k) {
    const bool isFactor = k == product.a.position || k == product.b.position;
    std::string type =
        cType(getElementTypeOrSelf(product.entry.getArgumentTypes()[k]));
    addParameter(
        k,
        isFactor && takesMaps ? "const __grid_constant__ MgpuTensorMap "
        : isFactor            ? "const " + type + " *"
        : types[k].empty()
            ? "const " + type +
                  (isa<MemRefType>(product.entry.getArgumentTypes()[k]) ? " *"
                                                                        : " ")
            : types[k]);
  }
  words["WHAT"] = a + " * " + b;
  words["WHAT"] = product.overwrites
                      ? arguments[product.c.position] + " = " + words["WHAT"]
                      : words["WHAT"] + ", from " + kernel.name +
                            "_first on to " + kernel.name + "_last";
  return success();
}

void ProductText::beginAndStore(const std::string &first) {
  words["CAT"] = product.c.at(arguments[product.c.position], "row", "column");
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
  words["M"] = std::to_string(product.m());
  words["N"] = std::to_string(product.n());
  words["K"] = std::to_string(product.k());
  words["BATCHES"] =
      product.c.batch > 1 ? std::to_string(product.c.batch) + " times " : "";
  words["X"] = std::to_string(options.block.x);
  words["Y"] = std::to_string(options.block.y);
  std::string type = words["TYPE"] = cType(product.a.element);
  words["CTYPE"] = cType(product.c.element);
  words["AWAITER"] = awaitFunction;
  words["AWAIT"] = awaitCall;
  for (const char *each : {"PARAMETERS", "OTHERS", "PASSED"})
    words[each] = "";
  if (product.loop) {
    if (failed(prepareAround()))
      return failure();
  } else {
    std::string c = arguments[product.c.position];
    for (unsigned k = 0; k < arguments.size(); ++k)
      addParameter(k, k == product.c.position ? words["CTYPE"] + " *"
                      : takesMaps ? "const __grid_constant__ MgpuTensorMap "
                                  : "const " + type + " *");
    words["WHAT"] = c + " += " + a + " * " + b;
    beginAndStore(product.c.at(c, "row", "column"));
  }
  const bool isWide = storesPairs();
  words["SUMS"] =
      fill(std::string(sumText) + (isWide ? pairText : "") +
               (isWide && !product.overwrites ? firstWide : firstPair) +
               (isWide ? storeWide : storePair),
           words);
  std::string own = helpers.text();
  if (!own.empty() && !functions.empty())
    own += "\n";
  words["HELPERS"] = own + functions;
  return success();
}

CudaKernel ProductText::write(const char *head, const char *body) {
  std::string text = fill(head, words);
  auto macro = [&](const std::string &name, uint32_t value) {
    text += macroDefault(name, value);
  };
  const planner::KernelConfig &defaults = space.defaults;
  macro("MGPU_BLOCK_X", defaults[P::BlockX]);
  macro("MGPU_BLOCK_Y", defaults[P::BlockY]);
  macro("MGPU_TILE_X", defaults[P::TileX]);
  macro("MGPU_TILE_Y", defaults[P::TileY]);
  for (size_t k = 0; k < space.tunables().size(); ++k)
    macro(space.tunables()[k].name, defaults.tunables[k]);
  macro("MGPU_MIN_BLOCKS", 1);
  macro("MGPU_PDL", 0);
  text += fill(body, words);
  kernel.image.blob = functions.empty()
                          ? std::move(text)
                          : withOwnLines(text, kernel.name + ".cu");
  return std::move(kernel);
}

} // namespace mgpu::kernels::cuda
