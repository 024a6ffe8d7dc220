// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KernelRunner.h"
#include "RandomKernelText.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

namespace mgpu::kernels::random {

static bool anyExchange(const std::vector<Op> &ops) {
  for (const Op &op : ops) {
    if (op.code >= Op::Exchange && op.code <= Op::Reduce)
      return true;
    for (const Body &inner : op.bodies)
      if (anyExchange(inner.ops))
        return true;
  }
  return false;
}

bool Kernel::exchanges() const {
  for (const Array &array : arrays)
    if (array.place == Array::Workgroup)
      return true;
  return anyExchange(body);
}

Memory::Memory(const Kernel &kernel, uint64_t seed)
    : input(kernel.threads()), output(kernel.threads() + 1),
      slots(bytesOfSlot(kernel) * numSlots / sizeof(uint64_t), seed) {
  std::mt19937 random{uint32_t(seed)};
  for (int32_t &value : input)
    value = random() % 3 ? int32_t(random() % 100) - 50 : int32_t(random());
}

std::vector<uint64_t> Memory::arguments(size_t which) {
  return {arg(input), arg(output), arg(slots), arg(slots), arg(int64_t(which))};
}

void inBatches(uint64_t first, uint64_t count, size_t batch,
               const std::function<void(const Batch &)> &test) {
  std::map<std::array<uint32_t, 4>, Batch> waiting;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Kernel kernel = Kernel::make(seed);
    Dim3 block = kernel.block;
    Batch &same = waiting[{block.x, block.y, block.z, kernel.exchanges()}];
    same.seeds.push_back(seed);
    same.kernels.push_back(std::move(kernel));
    if (same.seeds.size() == batch)
      test(std::exchange(same, {}));
  }
  for (const auto &[block, rest] : waiting)
    if (!rest.seeds.empty())
      test(rest);
}

std::pair<uint64_t, uint64_t> seedRange(uint64_t first, uint64_t count) {
  if (const char *asked = std::getenv("MGPU_KERNEL_SEEDS"))
    std::sscanf(asked, "%lu:%lu", &first, &count);
  return {first, count};
}

} // namespace mgpu::kernels::random
