// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_CUBINCACHE_H
#define MGPU_PIPELINE_CUBINCACHE_H

#include "db/SqliteBlobCache.h"

#include <memory>
#include <string>

namespace mgpu::pipeline {

/// The database as a cache of cubins between runs; `database` is as LoadOptions
/// has it. Null, with a warning, where it cannot be opened: nothing is lost but
/// time.
std::unique_ptr<db::SqliteBlobCache>
openCubinCache(const std::string &database);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_CUBINCACHE_H
