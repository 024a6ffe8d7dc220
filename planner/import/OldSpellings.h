// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_OLDSPELLINGS_H
#define MGPU_PLANNER_IMPORT_OLDSPELLINGS_H

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace mgpu::planner {

/// A text as MLIR spells it now. Operations of the gpu dialect may be spelled
/// as in 2019 (`"gpu.thread_id"() {dimension = "x"}`, `{op = "add"}`), and
/// constants of i1 in hexadecimal with a byte for each element. Lines stay
/// where they are.
struct Respelled {
  std::string text;            ///< empty where nothing changes
  std::vector<unsigned> lines; ///< with operations that changed, from 1 on
};

Respelled respell(llvm::StringRef text);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_OLDSPELLINGS_H
