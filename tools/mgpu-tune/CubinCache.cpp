// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/CubinCache.h"

#include "db/FileSystem.h"

#include <cstdio>
#include <fmt/format.h>

namespace mgpu::tune {

std::unique_ptr<db::SqliteBlobCache> openCubinCache(const Options &options) {
  auto path = db::databasePath(options.database);
  auto cache =
      path ? db::SqliteBlobCache::open(*path) : tl::unexpected(path.error());
  if (cache)
    return std::move(*cache);
  fmt::print(stderr, "mgpu-tune: warning: cubins are not kept: {}\n",
             cache.error().message);
  return nullptr;
}

} // namespace mgpu::tune
