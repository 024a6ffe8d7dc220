// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/Annotations.h"

#include "dialect/conversion/Passes.h"
#include "dialect/mpmd/MpmdDialect.h"
#include "dialect/sdy/SdyDialect.h"
#include "planner/dag/Dag.h"
#include "planner/import/ScalarArguments.h"
#include "support/Spelling.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>

#include <set>

namespace mgpu::planner {

using namespace mlir;

static std::vector<std::string> namesOf(ModuleOp module) {
  std::set<std::string> names;
  module.walk([&](Operation *op) {
    if (auto computation = dyn_cast<mpmd::NamedComputationOp>(op))
      names.insert(computation.getName().str());
    else if (auto tensor = dyn_cast<mpmd::NamedTensorOp>(op))
      names.insert(tensor.getName().str());
  });
  return {names.begin(), names.end()};
}

static std::vector<std::string> meshNamesOf(mpmd::TopologyAttr topology) {
  std::vector<std::string> meshes;
  for (mpmd::NamedMeshAttr each : topology.getMeshes())
    meshes.push_back(each.getName().str());
  return meshes;
}

Result<void> checkMeshNames(ModuleOp module, Operation *entry,
                            const std::map<std::string, std::string> &meshes) {
  if (meshes.empty() || !entry)
    return {};
  mpmd::TopologyAttr topology = mpmd::topologyOf(entry);
  const std::vector<std::string> names = namesOf(module);
  for (const auto &[name, mesh] : meshes) {
    auto refuse = [&](std::string why) {
      return fail(ErrorKind::Usage,
                  fmt::format("--assign {}={}: {}", name, mesh, why));
    };
    if (!topology)
      return refuse("the program has no meshes; it is for mpmd programs, whose "
                    "entry has the attribute 'topology'");
    if (!llvm::is_contained(names, name))
      return refuse(
          names.empty()
              ? "no computation or tensor of the program has a name"
              : fmt::format("no computation or tensor has that name{}; the "
                            "program names {}",
                            didYouMean(name, names), llvm::join(names, ", ")));
    if (!topology.find(mesh))
      return refuse(fmt::format("there is no such mesh; the program has {}",
                                llvm::join(meshNamesOf(topology), ", ")));
  }
  return {};
}

Result<void> checkSchedule(Operation *entry, const std::string &name,
                           bool remat) {
  const std::vector<std::string> names = {
      "auto",     "gpipe", "1f1b",  "eager-1f1b", "interleaved",
      "circular", "zb-h1", "zb-h2", "dualpipev"};
  auto refuse = [&](std::string why) {
    return fail(ErrorKind::Usage, fmt::format("--schedule {}: {}", name, why));
  };
  if (name.empty() && remat)
    return fail(ErrorKind::Usage,
                "--remat: the planner's own order may run at once what is to "
                "be computed later: give --schedule");
  if (name.empty())
    return {};
  if (!llvm::is_contained(names, name))
    return refuse(fmt::format("there is no such schedule{}; there are {}",
                              didYouMean(name, names),
                              llvm::join(names, ", ")));
  if (name != "auto" && entry && !mpmd::topologyOf(entry))
    return refuse("the program has no meshes; it is for mpmd programs, whose "
                  "entry has the attribute 'topology'");
  return {};
}

std::vector<MeshDevices> meshesOf(Operation *entry) {
  std::vector<MeshDevices> meshes;
  uint32_t next = 0;
  mpmd::TopologyAttr topology = entry ? mpmd::topologyOf(entry) : nullptr;
  if (!topology)
    return meshes;
  for (mpmd::NamedMeshAttr each : topology.getMeshes()) {
    const auto count = uint32_t(each.getMesh().numDevices());
    meshes.push_back({each.getName().str(), next, count});
    next += count;
  }
  return meshes;
}

/// The name by which the user knows an argument of a function over tensors.
static std::string nameOf(BlockArgument argument) {
  auto entry = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  const unsigned index = argument.getArgNumber();
  StringAttr name = conversion::exportedName(entry, index);
  return name && !name.empty() ? name.str() : argumentName(entry, index);
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

static Result<void> setGrid(ModuleOp module, const std::string &text) {
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
          {nameOf(argument), type.getShape().vec(),
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

static void setSplits(func::FuncOp entry,
                      const std::map<std::string, Split> &splits) {
  auto module = entry->getParentOfType<ModuleOp>();
  shard::GridOp grid = onlyGrid(module);
  for (BlockArgument argument : llvm::reverse(entry.getArguments())) {
    auto at = splits.find(nameOf(argument));
    if (at == splits.end())
      continue;
    if (grid)
      annotate(argument, grid.getSymName(), at->second);
    else
      entry.setArgAttr(argument.getArgNumber(), sdy::shardingName,
                       shardingOf(onlyMesh(module), at->second));
  }
}

/// Whether the program says by itself what its devices are: by operations or
/// attributes of the dialects of layouts, or by how many partitions it has.
static bool namesDevices(ModuleOp module, func::FuncOp entry) {
  auto isOfDevices = [](Operation *op) {
    if (isa<shard::GridOp, sdy::MeshOp>(op))
      return WalkResult::interrupt();
    bool found = false;
    op->getAttrDictionary().walk(
        [&](sdy::TensorShardingAttr) { found = true; });
    return found ? WalkResult::interrupt() : WalkResult::advance();
  };
  auto count = module->getAttrOfType<IntegerAttr>("mhlo.num_partitions");
  return module.walk(isOfDevices).wasInterrupted() || mpmd::topologyOf(entry) ||
         (count && !count.getValue().isOne());
}

/// Gives a program that names no devices a mesh with axes as
/// `data=4,model=2`.
static Result<void> setMesh(ModuleOp module, func::FuncOp entry,
                            const std::string &text) {
  auto refuse = [&](const std::string &why) {
    return fail(ErrorKind::Usage, fmt::format("--mesh {}: {}", text, why));
  };
  if (!entry || !conversion::isTensorProgram(entry))
    return refuse("it is for functions over tensors");
  if (namesDevices(module, entry))
    return refuse("the program names its devices by itself");
  SmallVector<StringRef> parts;
  StringRef(text).split(parts, ',');
  module.getContext()->getOrLoadDialect<sdy::SdyDialect>();
  OpBuilder b(module.getContext());
  SmallVector<sdy::MeshAxisAttr> axes;
  uint64_t devices = 1;
  for (StringRef part : parts) {
    auto [name, digits] = part.split('=');
    uint64_t size = 0;
    if (!isIdentifier(std::string_view(name)) ||
        digits.getAsInteger(10, size) || size < 1)
      return refuse("it must be axes and their sizes, as data=4,model=2");
    for (sdy::MeshAxisAttr axis : axes)
      if (axis.getName() == name)
        return refuse(fmt::format("it has axis '{}' twice", name.str()));
    if (size > maxDevices || (devices *= size) > maxDevices)
      return refuse(fmt::format("it has more than {} devices", maxDevices));
    axes.push_back(sdy::MeshAxisAttr::get(
        module.getContext(), b.getStringAttr(name), int64_t(size)));
  }
  auto mesh =
      sdy::MeshOp::create(b, module.getLoc(), "mesh",
                          sdy::MeshAttr::get(module.getContext(), axes, {}));
  // A table inserts it under another name where that one is taken.
  SymbolTable(module).insert(mesh, module.getBody()->begin());
  return {};
}

/// The number of an axis: of a mesh by its name, of a grid by its number. Fails
/// with the axes that there are.
static Result<int64_t> axisOf(ModuleOp module, StringRef text) {
  SmallVector<std::string> names;
  if (shard::GridOp grid = onlyGrid(module))
    for (size_t k = 0; k < grid.getShape().size(); ++k)
      names.push_back(std::to_string(k));
  else
    for (sdy::MeshAxisAttr axis : onlyMesh(module).getMesh().getAxes())
      names.push_back(axis.getName().str());
  auto *at = llvm::find(names, text);
  if (at == names.end())
    return fail(ErrorKind::Usage,
                fmt::format("the program's mesh has no axis '{}'; for each "
                            "dimension say which axis cuts it, of {}, or -",
                            text.str(), llvm::join(names, ", ")));
  return at - names.begin();
}

/// The cuts of an argument by `text`, as `data,-` or `data+model`.
static Result<Split> readCuts(ModuleOp module, const std::string &text) {
  SmallVector<StringRef> dims;
  StringRef(text).split(dims, ',');
  Split split(dims.size());
  std::set<int64_t> used;
  for (auto [dim, into] : llvm::zip(dims, split)) {
    SmallVector<StringRef> names;
    dim.split(names, '+');
    if (dim == "-")
      continue;
    for (StringRef name : names) {
      MGPU_TRY_ASSIGN(const int64_t axis, axisOf(module, name));
      if (!used.insert(axis).second)
        return fail(ErrorKind::Usage,
                    fmt::format("axis '{}' cuts it twice", name.str()));
      into.push_back(axis);
    }
  }
  while (!split.empty() && split.back().empty())
    split.pop_back();
  return split;
}

/// Cuts the arguments that `key` names. One that a pattern names, but which has
/// too few dimensions, stays whole. Fails with the reason alone.
static Result<void> cut(func::FuncOp entry, const std::string &key,
                        const Split &cuts, std::set<std::string> &isNamed,
                        std::map<std::string, Split> &splits) {
  const bool isPattern = key.find('*') != key.npos;
  bool isFound = false;
  std::vector<std::string> names;
  for (BlockArgument argument : entry.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type)
      continue;
    const std::string &name = names.emplace_back(nameOf(argument));
    if (!matchesPattern(key, name))
      continue;
    isFound = true;
    const size_t rank = size_t(type.getRank());
    if (!isPattern && cuts.size() > rank)
      return fail(ErrorKind::Usage,
                  fmt::format("the argument has {} dimensions", rank));
    if (!isPattern && !isNamed.insert(name).second)
      return fail(ErrorKind::Usage, "it is given twice");
    if (cuts.size() > rank || (isPattern && isNamed.contains(name)))
      continue;
    splits[name] = cuts;
    splits[name].resize(rank);
  }
  if (!isFound)
    return fail(ErrorKind::Usage, "no argument that is a tensor has that name" +
                                      didYouMean(key, names));
  return {};
}

/// By the names of arguments: what --shard says.
static Result<std::map<std::string, Split>>
splitsOf(ModuleOp module, func::FuncOp entry, const GivenShardings &given) {
  std::map<std::string, Split> splits;
  if (given.cuts.empty())
    return splits;
  if (!entry || (!onlyGrid(module) && !onlyMesh(module)))
    return fail(ErrorKind::Usage,
                entry && namesDevices(module, entry)
                    ? "--shard: it is for programs that have one shard.grid, "
                      "or one sdy.mesh without a list of devices"
                    : "--shard: the program has no mesh that could cut its "
                      "arguments: give one, --mesh data=4");
  std::set<std::string> isNamed;
  for (const auto &[key, text] : given.cuts) {
    auto done = readCuts(module, text).and_then([&](const Split &cuts) {
      return cut(entry, key, cuts, isNamed, splits);
    });
    if (!done)
      return fail(done.error().kind, fmt::format("--shard {}={}: {}", key, text,
                                                 done.error().message));
  }
  return splits;
}

Result<void> applyShardings(ModuleOp module, func::FuncOp entry,
                            const GivenShardings &given) {
  if (!given.grid.empty())
    MGPU_TRY(setGrid(module, given.grid));
  if (!given.mesh.empty())
    MGPU_TRY(setMesh(module, entry, given.mesh));
  MGPU_TRY_ASSIGN(auto splits, splitsOf(module, entry, given));
  for (const auto &[name, split] : given.splits)
    splits[name] = split;
  if (!splits.empty())
    setSplits(entry, splits);
  return {};
}

std::string programText(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, OpPrintingFlags().printNameLocAsPrefix());
  return text + "\n";
}

} // namespace mgpu::planner
