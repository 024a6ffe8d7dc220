// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_CUBINCACHE_H
#define MGPU_TOOLS_MGPU_TUNE_CUBINCACHE_H

#include "db/SqliteBlobCache.h"
#include "tools/mgpu-tune/Options.h"

#include <memory>

namespace mgpu::tune {

/// Where cubins are kept between runs, in the user's database. Null, with a
/// warning, where there is none to be had: that costs time alone.
std::unique_ptr<db::SqliteBlobCache> openCubinCache(const Options &options);

} // namespace mgpu::tune

#endif // MGPU_TOOLS_MGPU_TUNE_CUBINCACHE_H
