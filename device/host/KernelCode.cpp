// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/KernelCode.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <dlfcn.h>
#include <link.h>

namespace mgpu::device {

namespace {

/// In use from when `end` is set; nothing is locked, as a handler of signals
/// may come at any time.
struct Code {
  std::atomic<bool> isTaken{false};
  std::atomic<uintptr_t> end{0};
  uintptr_t begin = 0;
  char name[104] = {};
};
std::array<Code, 8192> codes;

} // namespace

size_t addKernelCode(std::string_view name, void *handle, uint64_t bytes) {
  link_map *map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void *>(&map)) != 0 || !map)
    return codes.size();
  for (size_t k = 0; k < codes.size(); ++k) {
    Code &code = codes[k];
    if (code.isTaken.exchange(true))
      continue;
    code.begin = uintptr_t(map->l_addr);
    const size_t length = std::min(name.size(), sizeof code.name - 1);
    std::copy_n(name.data(), length, code.name);
    code.name[length] = '\0';
    code.end.store(code.begin + bytes, std::memory_order_release);
    return k;
  }
  return codes.size();
}

void removeKernelCode(size_t slot) {
  if (slot >= codes.size())
    return;
  codes[slot].end.store(0, std::memory_order_release);
  codes[slot].isTaken.store(false);
}

const char *kernelNameAt(uintptr_t address) {
  for (const Code &code : codes) {
    const uintptr_t end = code.end.load(std::memory_order_acquire);
    if (address < end && address >= code.begin)
      return code.name;
  }
  return nullptr;
}

} // namespace mgpu::device
