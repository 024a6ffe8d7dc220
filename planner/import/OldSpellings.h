// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_OLDSPELLINGS_H
#define MGPU_PLANNER_IMPORT_OLDSPELLINGS_H

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace mgpu::planner {

/// A text whose operations of the gpu dialect are spelled as in 2019
/// (`"gpu.thread_id"() {dimension = "x"}`, `{op = "add"}`), as MLIR spells them
/// now. Lines stay where they are.
struct Respelled {
  std::string text;
  std::vector<unsigned> lines; ///< that changed, from 1 on
};

/// Nothing changes where `lines` of the result is empty; `text` is then, too.
Respelled respell(llvm::StringRef text);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_OLDSPELLINGS_H
