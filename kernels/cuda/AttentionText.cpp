// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/AttentionText.h"

#include "kernels/abi/LaunchForm.h"
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/FunctionEmitter.h"
#include "kernels/cuda/PartText.h"
#include "kernels/lower/Normalise.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

using P = KernelParameter;

/// The operands' letters in the words.
static constexpr const char *letters[] = {"Q", "K", "V", "R"};

AttentionText::AttentionText(ModuleOp module, const CudaEmitOptions &options,
                             const KernelSpace &space, StringRef reserved)
    : body(*attentionForm(module)),
      entry(module.lookupSymbol<func::FuncOp>("entry")), options(options),
      space(space) {
  kernel.name = kernel.image.entry = names.fresh(options.name);
  kernel.image.sourceBlock = options.block;
  kernel.reshapable = true;
  kernel.reason = space.reason;
  kernel.vectorReason = "has tiles instead";
  for (StringRef each : llvm::split(reserved, ' '))
    names.reserve(each);
  for (BlockArgument argument : entry.getArguments()) {
    StringRef wish = sourceName(argument.getLoc());
    arguments.push_back(names.fresh(wish.empty() ? "x" : wish));
  }
}

LogicalResult AttentionText::emitScore() {
  OwningOpRef<ModuleOp> module = scoreFunction(body);
  if (failed(normaliseKernel(*module, options.block)))
    return failure();
  eraseDeadCode(*module);
  const Dim3 grid{options.maxGrid.x, options.maxGrid.y,
                  uint32_t(body.of.getKeys())};
  const facts::IndexRanges ranges(*module, options.block, grid);
  KernelContext context(options.block, ranges);
  context.helpers = helpers;
  Text out;
  const std::string name = kernel.name + "_score";
  auto call = writePart(
      module->lookupSymbol<func::FuncOp>("attention.score"),
      {entry, arguments, types}, "float " + name,
      "const int globalX, const int globalY, const int globalZ", context, out);
  if (failed(call))
    return failure();
  words["SCORE"] = name + "(" + *call;
  helpers = context.helpers;
  function = out.text;
  if (StringRef(function).contains("#line"))
    function += ownLine.str(); // from here on the text is its own source
  return success();
}

std::string AttentionText::firstOf(unsigned k) const {
  const SmallVector<int64_t> strides = attentionStrides(body, k);
  std::string first = std::to_string(strides.back()) + "LL";
  int64_t below = 1;
  ArrayRef<int64_t> batch = body.of.getBatch();
  for (size_t dim = batch.size(); dim-- > 0; below *= batch[dim])
    if (strides[dim] != 0 && batch[dim] > 1)
      first += " + batch / " + std::to_string(below) + " % " +
               std::to_string(batch[dim]) + " * " +
               std::to_string(strides[dim]) + "LL";
  return first;
}

std::string AttentionText::elementAt(unsigned k, const std::string &row,
                                     const std::string &column) const {
  const SmallVector<int64_t> strides = attentionStrides(body, k);
  const size_t batch = body.of.getBatch().size();
  const bool isOfQuery = k == 0 || k == 3, isOfHead = k < 2;
  auto times = [](const std::string &index, int64_t stride) {
    return "(" + index + ") * " + std::to_string(stride) + "LL";
  };
  return std::string("first") + letters[k] + "[" +
         times(row, strides[batch + (isOfQuery ? 0 : 1)]) + " + " +
         times(column, strides[batch + (isOfHead ? 2 : 3)]) + "]";
}

LogicalResult AttentionText::prepare() {
  words["NAME"] = kernel.name;
  words["AT"] =
      options.location.empty() ? "" : ": the launch at " + options.location;
  words["X"] = std::to_string(options.block.x);
  words["Y"] = std::to_string(options.block.y);
  words["LAUNCH"] = launchType;
  words["AWAITER"] = awaitFunction;
  words["AWAIT"] = awaitCall;
  for (auto [name, size] : {std::pair("QUERIES", body.of.getQueries()),
                            {"KEYS", body.of.getKeys()},
                            {"HEAD", body.of.getHead()},
                            {"VALUE", body.of.getValue()},
                            {"BATCHES", body.of.getBatchSize()}})
    words[name] = std::to_string(size);
  words["FORM"] = launchFormText(
      kernel.name, {"MGPU_BLOCK_Y * MGPU_TILE_Y", "1", "MGPU_BLOCK_Z"});
  types.assign(arguments.size(), "");
  for (auto [k, position] : llvm::enumerate(body.of.getOperands())) {
    const std::string letter = letters[k];
    const std::string type =
        cType(getElementTypeOrSelf(entry.getArgumentTypes()[size_t(position)]));
    words[letter] = arguments[size_t(position)];
    words[letter + "TYPE"] = type;
    words[letter + "FIRST"] = firstOf(unsigned(k));
    types[size_t(position)] = (k < 3 ? "const " : "") + type + " *";
    for (const char *narrow : {"f16", "bf16"})
      if (type == narrow)
        helpers.use(narrow);
  }
  if (failed(emitScore()))
    return failure();
  words["PARAMETERS"] = words["PASSED"] = "";
  for (unsigned k = 0; k < arguments.size(); ++k) {
    Type given = entry.getArgumentTypes()[k];
    const bool isBuffer = isa<MemRefType>(given);
    if (types[k].empty())
      types[k] = "const " + cType(getElementTypeOrSelf(given)) +
                 (isBuffer ? " *" : " ");
    kernel.parameters.push_back({arguments[k], types[k]});
    kernel.image.parameterBytes.push_back(
        isBuffer ? 8 : std::max(widthOf(given), 8u) / 8);
    kernel.image.argumentAlignment.push_back(1);
    words["PARAMETERS"] += types[k] + arguments[k] + ", ";
    words["PASSED"] += arguments[k] + ", ";
  }
  std::string own = helpers.text();
  words["HELPERS"] = own + (own.empty() ? "" : "\n") + function;
  return success();
}

CudaKernel AttentionText::write(const char *head, const char *text) {
  std::string all = fill(head, words);
  auto macro = [&](const std::string &name, uint32_t value) {
    all += macroDefault(name, value);
  };
  macro("MGPU_BLOCK_X", space.defaults[P::BlockX]);
  macro("MGPU_BLOCK_Y", space.defaults[P::BlockY]);
  macro("MGPU_TILE_Y", space.defaults[P::TileY]);
  for (size_t k = 0; k < space.tunables().size(); ++k)
    macro(space.tunables()[k].name, space.defaults.tunables[k]);
  macro("MGPU_BLOCK_Z", 1);
  macro("MGPU_MIN_BLOCKS", 1);
  macro("MGPU_PDL", 0);
  all += fill(text, words);
  kernel.image.blob = withOwnLines(all, kernel.name + ".cu");
  return std::move(kernel);
}

} // namespace mgpu::kernels::cuda
