// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/MeshNames.h"

#include "dialect/mpmd/MpmdDialect.h"
#include "support/Spelling.h"

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

} // namespace mgpu::planner
