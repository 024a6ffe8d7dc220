// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/conformance/KernelMemory.h"

#include <cstdlib>
#include <cstring>
#include <random>

namespace mgpu::conformance {

const planner::KernelCall &firstCall(const planner::Dag &dag, uint32_t kernel) {
  for (const planner::DagNode &node : dag.nodes)
    if (auto *call = std::get_if<planner::KernelCall>(&node.work))
      if (call->kernel.value == kernel)
        return *call;
  std::abort();
}

Memory memoryFor(const planner::Dag &dag, const planner::KernelCall &call) {
  Memory memory;
  std::mt19937 random(7);
  for (const planner::KernelArgument &argument : call.arguments) {
    auto *id = std::get_if<planner::BufferId>(&argument.value);
    if (!id || memory.count(id->value))
      continue;
    const planner::Buffer &buffer = dag.buffer(*id);
    std::vector<std::byte> &bytes = memory[id->value];
    bytes.resize(buffer.sizeBytes);
    bool isFloat = buffer.elementType == ElementType::F32;
    if (isFloat)
      for (size_t k = 0; k + 4 <= bytes.size(); k += 4) {
        float value = float(int(random() % 9) - 4) / 2;
        std::memcpy(&bytes[k], &value, 4);
      }
    else
      for (size_t k = 0; k < bytes.size(); k += sizeBytes(buffer.elementType))
        bytes[k] = std::byte(random() % 4);
  }
  return memory;
}

std::vector<uint64_t> argumentsFor(const planner::KernelCall &call,
                                   Memory &memory) {
  std::vector<uint64_t> words;
  for (const planner::KernelArgument &argument : call.arguments)
    if (auto *id = std::get_if<planner::BufferId>(&argument.value))
      words.push_back(reinterpret_cast<uint64_t>(memory[id->value].data()) +
                      uint64_t(argument.offsetBytes));
    else
      words.push_back(std::get<uint64_t>(argument.value));
  return words;
}

} // namespace mgpu::conformance
