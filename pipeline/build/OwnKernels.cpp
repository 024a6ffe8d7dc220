// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/build/OwnKernels.h"

#include "db/FileSystem.h"
#include "db/SqliteBlobCache.h"
#include "device/cuda/api/DeviceKernels.h"
#include "kernels/compile/NvrtcCompiler.h"

namespace mgpu::pipeline {

std::set<std::string> ownPrograms(const planner::Dag &dag) {
  std::set<std::string> programs{device::moveKernelSource()};
  for (const planner::DagNode &node : dag.nodes)
    if (const auto *call = std::get_if<planner::CollectiveCall>(&node.work))
      if (call->kind == CollectiveKind::AllReduce ||
          call->kind == CollectiveKind::ReduceScatter)
        programs.insert(
            device::reductionKernelSource(call->elementType, call->reduction));
  return programs;
}

Result<capture::OwnCubins> compileOwn(const planner::Dag &dag,
                                      std::span<const std::string> archs,
                                      device::BlobCache *cache) {
  capture::OwnCubins cubins;
  for (const std::string &text : ownPrograms(dag))
    for (const std::string &arch : archs) {
      MGPU_TRY_ASSIGN(auto cubin,
                      kernels::compileCubin(text, "mgpu_own", arch, cache));
      cubins.emplace(capture::ownKey(arch, text), std::move(cubin));
    }
  return cubins;
}

device::CudaCompile ownCompiler(std::optional<std::string> database,
                                capture::OwnCubins given) {
  return [database = std::move(database), given = std::move(given)](
             const std::string &source, const std::string &name,
             const std::string &arch) -> Result<std::vector<std::byte>> {
    if (auto at = given.find(capture::ownKey(arch, source)); at != given.end())
      return at->second;
    // Without a cache it takes longer, and nothing else; who keeps the
    // program's cubins has said so.
    std::unique_ptr<db::SqliteBlobCache> cache;
    if (auto path = db::databasePath(database.value_or("")); database && path)
      if (auto opened = db::SqliteBlobCache::open(*path))
        cache = std::move(*opened);
    return kernels::compileCubin(source, name, arch, cache.get());
  };
}

} // namespace mgpu::pipeline
