// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/ScalarArguments.h"

#include "dialect/mgpu/Diagnostics.h"
#include "dialect/sdy/SdyDialect.h"
#include "planner/import/HostValue.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"

#include <fmt/format.h>

namespace mgpu::planner {

using namespace mlir;

Result<Attribute> parseScalar(Type type, ElementType element,
                              const std::string &text) {
  Array value{element, {}, std::vector<std::byte>(sizeBytes(element))};
  if (NumberText outcome = parseNumber(text, element, value.bytes.data());
      outcome != NumberText::Stored)
    return fail(ErrorKind::Usage, whyNotStored(outcome, text, element));
  if (isa<FloatType>(type))
    return FloatAttr::get(type, loadNumber(value, 0)); // exact
  uint64_t bits = 0; // little-endian, as all machines that this runs on
  std::copy(value.bytes.begin(), value.bytes.end(),
            reinterpret_cast<std::byte *>(&bits));
  const unsigned width =
      type.isIndex() ? 64u : cast<IntegerType>(type).getWidth();
  return IntegerAttr::get(type, llvm::APInt(64, bits).trunc(width));
}

const std::string *findText(const ArgumentTexts &texts, const std::string &name,
                            unsigned index) {
  for (const std::string &key : {name, std::to_string(index)})
    if (auto at = texts.find(key); at != texts.end())
      return &at->second;
  return nullptr;
}

std::string argumentName(func::FuncOp function, unsigned index) {
  if (auto name = function.getArgAttrOfType<StringAttr>(index, "mgpu.name"))
    return name.str();
  return nameOf(function.getArgument(index).getLoc(), std::to_string(index));
}

void setRoles(func::FuncOp function, const ArgumentTexts &roles) {
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    if (auto *role = findText(roles, argumentName(function, index), index))
      function.setArgAttr(index, "mgpu.role",
                          StringAttr::get(function.getContext(), *role));
}

void foldScalars(func::FuncOp function, const ArgumentTexts &values) {
  OpBuilder b(function.getBody());
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (!argument.getType().isSignlessIntOrIndex())
      continue;
    auto role = function.getArgAttrOfType<StringAttr>(index, "mgpu.role");
    const std::string *text =
        findText(values, argumentName(function, index), index);
    if (!text || (role && role == "dynamic"))
      continue;
    auto element = elementTypeOf(argument.getType());
    if (!element)
      continue;
    if (auto value = parseScalar(argument.getType(), *element, *text))
      argument.replaceAllUsesWith(arith::ConstantOp::create(
          b, argument.getLoc(), cast<TypedAttr>(*value)));
  }
}

static shard::GridOp onlyGrid(ModuleOp module) {
  auto grids = module.getOps<shard::GridOp>();
  return llvm::hasSingleElement(grids) ? *grids.begin() : shard::GridOp();
}

/// A mesh of Shardy whose devices are in their order.
static sdy::MeshOp onlyMesh(ModuleOp module) {
  auto meshes = module.getOps<sdy::MeshOp>();
  return llvm::hasSingleElement(meshes) &&
                 (*meshes.begin()).getMesh().getDeviceIds().empty()
             ? *meshes.begin()
             : sdy::MeshOp();
}

Result<void> setGrid(ModuleOp module, const std::string &text) {
  auto refuse = [&](const char *why) {
    return fail(ErrorKind::Usage, fmt::format("--grid {}: {}", text, why));
  };
  SmallVector<StringRef> parts;
  StringRef(text).split(parts, 'x');
  SmallVector<int64_t> sizes(parts.size());
  for (auto [part, size] : llvm::zip(parts, sizes))
    if (part.getAsInteger(10, size) || size < 1)
      return refuse("it must be sizes from 1 on, as 2x4");
  shard::GridOp grid = onlyGrid(module);
  if (!grid)
    return refuse("it is for programs that have one shard.grid");
  if (sizes.size() != grid.getShape().size())
    return refuse("the program's shard.grid has another number of axes, which "
                  "its annotations name");
  grid.setShape(sizes);
  if (failed(verify(module)))
    return fail(ErrorKind::Invalid,
                fmt::format("the program is not one for a grid {}", text));
  return {};
}

/// The attribute that says how `argument` is cut, if there is one.
static shard::ShardOp annotationOf(BlockArgument argument) {
  for (Operation *user : argument.getUsers())
    if (auto annotation = dyn_cast<shard::ShardOp>(user))
      return annotation;
  return nullptr;
}

static std::optional<Split> splitOf(BlockArgument argument) {
  shard::ShardOp annotation = annotationOf(argument);
  auto sharding =
      annotation ? annotation.getSharding().getDefiningOp<shard::ShardingOp>()
                 : shard::ShardingOp();
  if (!sharding)
    return std::nullopt;
  Split split(cast<RankedTensorType>(argument.getType()).getRank());
  for (auto [dim, axes] : llvm::enumerate(sharding.getSplitAxes().getAxes()))
    if (dim < split.size())
      split[dim].assign(axes.asArrayRef().begin(), axes.asArrayRef().end());
  return split;
}

/// Reads Shardy's attribute. Parts of axes are no cuts of this kind.
static std::optional<Split> splitOf(func::FuncOp entry, unsigned argument,
                                    sdy::MeshAttr mesh) {
  auto sharding = entry.getArgAttrOfType<sdy::TensorShardingAttr>(
      argument, sdy::shardingName);
  if (!sharding)
    return std::nullopt;
  Split split;
  for (sdy::DimensionShardingAttr dim : sharding.getDims()) {
    split.emplace_back();
    for (sdy::AxisRefAttr axis : dim.getAxes()) {
      if (axis.isSubAxis())
        return std::nullopt;
      split.back().push_back(mesh.axisIndex(axis.getName()));
    }
  }
  return split;
}

Shardings shardingsOf(ModuleOp module, func::FuncOp entry) {
  Shardings shardings;
  sdy::MeshOp mesh;
  if (shard::GridOp grid = onlyGrid(module))
    shardings.grid = grid.getShape().vec();
  else if ((mesh = onlyMesh(module)))
    for (sdy::MeshAxisAttr axis : mesh.getMesh().getAxes())
      shardings.grid.push_back(axis.getSize());
  for (BlockArgument argument : entry.getArguments())
    if (auto type = dyn_cast<RankedTensorType>(argument.getType());
        type && type.hasStaticShape())
      shardings.arguments.push_back(
          {argumentName(entry, argument.getArgNumber()), type.getShape().vec(),
           mesh ? splitOf(entry, argument.getArgNumber(), mesh.getMesh())
                : splitOf(argument)});
  return shardings;
}

static void annotate(BlockArgument argument, StringRef grid,
                     const Split &split) {
  while (shard::ShardOp old = annotationOf(argument)) {
    old.getResult().replaceAllUsesWith(argument);
    old.erase();
  }
  MLIRContext *context = argument.getContext();
  SmallVector<shard::GridAxesAttr> axes;
  for (const std::vector<int64_t> &each : split)
    axes.push_back(shard::GridAxesAttr::get(
        context, SmallVector<int16_t>(each.begin(), each.end())));
  OpBuilder b = OpBuilder::atBlockBegin(argument.getOwner());
  Value sharding = shard::ShardingOp::create(
      b, argument.getLoc(), FlatSymbolRefAttr::get(context, grid), axes,
      ArrayRef<int64_t>(), ArrayRef<int64_t>());
  auto made = shard::ShardOp::create(b, argument.getLoc(), argument.getType(),
                                     argument, sharding);
  argument.replaceAllUsesExcept(made.getResult(), made);
}

static sdy::TensorShardingAttr shardingOf(sdy::MeshOp mesh,
                                          const Split &split) {
  MLIRContext *context = mesh.getContext();
  SmallVector<sdy::DimensionShardingAttr> dims;
  for (const std::vector<int64_t> &each : split) {
    SmallVector<sdy::AxisRefAttr> axes;
    for (int64_t axis : each)
      axes.push_back(sdy::AxisRefAttr::get(
          context, mesh.getMesh().getAxes()[axis].getName(), 1, 0));
    dims.push_back(sdy::DimensionShardingAttr::get(context, axes, true, -1));
  }
  return sdy::TensorShardingAttr::get(
      context, FlatSymbolRefAttr::get(mesh.getSymNameAttr()), dims, {}, {},
      nullptr);
}

void setSplits(func::FuncOp entry, const std::map<std::string, Split> &splits) {
  auto module = entry->getParentOfType<ModuleOp>();
  shard::GridOp grid = onlyGrid(module);
  for (BlockArgument argument : llvm::reverse(entry.getArguments())) {
    auto at = splits.find(argumentName(entry, argument.getArgNumber()));
    if (at == splits.end())
      continue;
    if (grid)
      annotate(argument, grid.getSymName(), at->second);
    else
      entry.setArgAttr(argument.getArgNumber(), sdy::shardingName,
                       shardingOf(onlyMesh(module), at->second));
  }
}

std::string programText(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, OpPrintingFlags().printNameLocAsPrefix());
  return text + "\n";
}

} // namespace mgpu::planner
