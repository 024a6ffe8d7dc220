// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/OwnKernels.h"

#include "db/FileSystem.h"
#include "db/SqliteBlobCache.h"
#include "device/cuda/DeviceKernels.h"
#include "kernels/compile/NvrtcCompiler.h"
#include "support/Sha256.h"

namespace mgpu::tune {

namespace {

std::string hashOf(const std::string &text) {
  return Sha256().add(std::as_bytes(std::span(text))).hex();
}

} // namespace

std::map<std::string, std::string> ownPrograms(const planner::Dag &dag) {
  std::map<std::string, std::string> programs;
  auto add = [&](std::string text) {
    std::string hash = hashOf(text);
    programs.emplace(std::move(hash), std::move(text));
  };
  add(device::moveKernelSource());
  for (const planner::DagNode &node : dag.nodes)
    if (const auto *call = std::get_if<planner::CollectiveCall>(&node.work))
      if (call->kind == CollectiveKind::AllReduce ||
          call->kind == CollectiveKind::ReduceScatter)
        add(device::reductionKernelSource(call->elementType, call->reduction));
  return programs;
}

Result<capture::OwnCubins> compileOwn(const planner::Dag &dag,
                                      std::span<const std::string> archs,
                                      device::BlobCache *cache) {
  capture::OwnCubins cubins;
  for (const auto &[hash, text] : ownPrograms(dag))
    for (const std::string &arch : archs) {
      MGPU_TRY_ASSIGN(auto cubin,
                      kernels::compileCubin(text, "mgpu_own", arch, cache));
      cubins.emplace(std::pair(arch, hash), std::move(cubin));
    }
  return cubins;
}

device::CudaCompile ownCompiler(std::string database,
                                capture::OwnCubins given) {
  return [database = std::move(database), given = std::move(given)](
             const std::string &source, const std::string &name,
             const std::string &arch) -> Result<std::vector<std::byte>> {
    if (auto at = given.find({arch, hashOf(source)}); at != given.end())
      return at->second;
    // Without a cache it takes longer, and nothing else; who keeps the
    // program's cubins has said so.
    std::unique_ptr<db::SqliteBlobCache> cache;
    if (auto path = db::databasePath(database))
      if (auto opened = db::SqliteBlobCache::open(*path))
        cache = std::move(*opened);
    return kernels::compileCubin(source, name, arch, cache.get());
  };
}

} // namespace mgpu::tune
