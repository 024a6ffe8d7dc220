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

static std::vector<std::string> meshesOf(mpmd::TopologyAttr topology) {
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
                                llvm::join(meshesOf(topology), ", ")));
  }
  return {};
}

} // namespace mgpu::planner
