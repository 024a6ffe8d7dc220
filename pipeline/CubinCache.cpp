// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/CubinCache.h"

#include "db/FileSystem.h"

#include <cstdio>
#include <fmt/format.h>

namespace mgpu::pipeline {

std::unique_ptr<db::SqliteBlobCache>
openCubinCache(const std::string &database) {
  auto path = db::databasePath(database);
  auto cache =
      path ? db::SqliteBlobCache::open(*path) : tl::unexpected(path.error());
  if (cache)
    return std::move(*cache);
  fmt::print(stderr, "mgpu-tune: warning: cubins are not kept: {}\n",
             cache.error().message);
  return nullptr;
}

} // namespace mgpu::pipeline
