// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_TUNER_TESTSUBJECT_H
#define MGPU_TESTS_UNIT_TUNER_TESTSUBJECT_H

// The test program of capture as something to tune, with kernels that are
// sound or have a fault of choice (FaultyKernel.cpp).

#include "device/host/HostDriver.h"
#include "tests/unit/capture/TestProgram.h"
#include "tuner/candidate/Evaluator.h"

#include <gtest/gtest.h>

namespace mgpu::tuner {

using capture::TestProgram;

/// The uses that the importer would have given the nodes.
inline void addUses(planner::Dag &dag) {
  for (planner::DagNode &node : dag.nodes) {
    if (auto *copy = std::get_if<planner::CopyCall>(&node.work)) {
      node.uses.push_back({copy->source, copy->sourceBox, true, false});
      node.uses.push_back(
          {copy->destination, copy->destinationBox, false, true});
    } else if (auto *call = std::get_if<planner::KernelCall>(&node.work)) {
      for (size_t k : {0, 1}) {
        auto buffer = std::get<planner::BufferId>(call->arguments[k].value);
        Box all = Box::flat(0, int64_t(dag.buffer(buffer).sizeBytes));
        node.uses.push_back({buffer, all, true, k == 0});
      }
    } else if (auto *all = std::get_if<planner::CollectiveCall>(&node.work)) {
      for (const planner::CollectiveMember &member : all->members) {
        node.uses.push_back({member.send, member.sendBox, true, false});
        node.uses.push_back({member.recv, member.recvBox, false, true});
      }
    }
  }
}

inline Bytes readKernel(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_FALSE(text.empty()) << path;
  auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// The file of the kernels with the fault of that number; 0 is sound.
std::string kernelFile(uint32_t fault);

inline Bytes kernelWithFault(uint32_t number) {
  return readKernel(kernelFile(number));
}

struct TestSubject {
  TestProgram program;
  std::unique_ptr<ProgramData> data;

  TestSubject() : program(capture::makeTestProgram(kernelFile(0).c_str())) {
    addUses(program.dag);
    std::vector<ProgramInput> inputs;
    for (uint32_t id : {TestProgram::ArgX, TestProgram::ArgY}) {
      std::vector<float> values(2 * capture::half);
      for (size_t k = 0; k < values.size(); ++k)
        values[k] = float(k + id * 100) / 7;
      auto bytes = std::as_bytes(std::span(values));
      inputs.push_back({{id}, ElementType::F32, {bytes.begin(), bytes.end()}});
    }
    data = std::make_unique<ProgramData>(program.dag, std::move(inputs));
  }
  TestSubject(const TestSubject &) = delete; // `data` refers to `program`

  static Result<std::unique_ptr<device::Driver>>
  open(uint32_t devices, uint32_t threads, std::span<const int> workerCpus) {
    return device::createHostDriver(devices, threads, workerCpus);
  }
};

} // namespace mgpu::tuner

#endif // MGPU_TESTS_UNIT_TUNER_TESTSUBJECT_H
