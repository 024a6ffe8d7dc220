// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/cost/GpuTopology.h"
#include "planner/cost/TargetMachine.h"

#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::planner;

static GpuFacts h100() {
  return {"NVIDIA H100 80GB HBM3",
          90,
          85'028'896'768,
          132,
          1'980'000,
          2'619'000,
          5120};
}

static double kernelUs(const Machine &machine, double flops, double bytes) {
  Dag dag;
  DagNode node;
  node.work = OpaqueCall{};
  node.flops = flops;
  node.bytesRead = uint64_t(bytes);
  node.devices = {{0}};
  dag.nodes.push_back(node);
  return machine.durationUs(dag, NodeId{0});
}

TEST(GpuTopology, AKnownGpuHasThePublishedRates) {
  const auto known = *device::openTopology("sim:dgx-h100");
  auto made = topologyOfGpu(h100(), 4, 4);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->device.flopsPerSecond, known.device.flopsPerSecond);
  EXPECT_EQ(made->device.memoryBytesPerSecond,
            known.device.memoryBytesPerSecond);
  EXPECT_EQ(made->device.source, known.device.source);
  EXPECT_EQ(made->device.memoryBytes, 85'028'896'768u / 4);
  EXPECT_EQ(made->devices, 4u);
  EXPECT_EQ(Machine(*made).coefficients().front().origin, Origin::Published);
  // A driver may not say its clocks: the name does.
  GpuFacts silent = h100();
  silent.clockKhz = silent.memoryClockKhz = silent.busBits = 0;
  EXPECT_TRUE(topologyOfGpu(silent, 1));
}

TEST(GpuTopology, ANameAloneIsNotTheGpu) {
  auto isScaled = [](auto change) {
    GpuFacts gpu = h100();
    change(gpu);
    auto made = topologyOfGpu(gpu, 1);
    return made && made->device.rates == device::RateSource::Scaled;
  };
  EXPECT_FALSE(isScaled([](GpuFacts &) {}));
  // H100 PCIe, H100 NVL, a slice by MIG, GH200.
  EXPECT_TRUE(isScaled([](GpuFacts &gpu) { gpu.multiprocessors = 114; }));
  EXPECT_TRUE(isScaled([](GpuFacts &gpu) {
    gpu.name = "NVIDIA H100 NVL";
    gpu.busBits = 6016;
  }));
  EXPECT_TRUE(isScaled([](GpuFacts &gpu) { gpu.multiprocessors = 16; }));
  EXPECT_TRUE(isScaled([](GpuFacts &gpu) { gpu.name = "NVIDIA GH200 480GB"; }));
  EXPECT_FALSE(isScaled([](GpuFacts &gpu) {
    gpu.name = "NVIDIA H200";
    gpu.memoryClockKhz = 3'201'000;
    gpu.busBits = 6144;
  }));
  EXPECT_FALSE(isScaled([](GpuFacts &gpu) {
    gpu = {"NVIDIA A100-SXM4-80GB", 80, 0, 108, 1'410'000, 1'593'000, 5120};
  }));
}

TEST(GpuTopology, HalfAGpuTakesTwiceTheTime) {
  GpuFacts half = h100();
  half.name = "NVIDIA Unheard-of";
  half.multiprocessors /= 2;
  half.busBits /= 2;
  auto topology = topologyOfGpu(half, 1);
  ASSERT_TRUE(topology);
  const Machine whole(*device::openTopology("sim:dgx-h100")), scaled(*topology);
  for (auto [flops, bytes] :
       {std::pair(1e12, 1e6), std::pair(1e6, 1e9), std::pair(1e11, 4e9)}) {
    const double ratio =
        kernelUs(scaled, flops, bytes) / kernelUs(whole, flops, bytes);
    EXPECT_GT(ratio, 1.8) << flops;
    EXPECT_LT(ratio, 2.2) << flops;
  }
  Dag dag;
  dag.nodes.emplace_back().work = OpaqueCall{};
  EXPECT_EQ(scaled.origin(dag, NodeId{0}), Origin::Scaled);
  // An unknown architecture takes after the newest older one of its kind.
  for (auto [architecture, machine] :
       {std::pair(103, "dgx-b200"), std::pair(70, "dgx-a100"),
        std::pair(86, "pcie-l40s-4"), std::pair(121, "pcie-l40s-4")}) {
    half.architecture = uint32_t(architecture);
    EXPECT_NE(topologyOfGpu(half, 1)->name.find(machine), std::string::npos)
        << architecture;
  }
}

TEST(GpuTopology, WhatNoGpuHasIsASentence) {
  for (auto change : {+[](GpuFacts &gpu) { gpu.clockKhz = 0; },
                      +[](GpuFacts &gpu) { gpu.clockKhz = 4'000'000'000; },
                      +[](GpuFacts &gpu) { gpu.memoryClockKhz = 0; },
                      +[](GpuFacts &gpu) { gpu.memoryClockKhz = 1; },
                      +[](GpuFacts &gpu) { gpu.busBits = 0; },
                      +[](GpuFacts &gpu) { gpu.multiprocessors = 0; }}) {
    GpuFacts gpu = h100();
    gpu.name = "NVIDIA Unheard-of";
    change(gpu);
    auto made = topologyOfGpu(gpu, 1);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().kind, ErrorKind::Absent);
    EXPECT_NE(made.error().message.find("NVIDIA Unheard-of"),
              std::string::npos);
  }
}
