// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/cost/CollectiveTable.h"
#include "planner/cost/Contention.h"
#include "planner/cost/MatmulModel.h"
#include "planner/cost/Tables.h"
#include "planner/cost/TargetMachine.h"

#include <cmath>
#include <gtest/gtest.h>
#include <set>

using namespace mgpu;
using namespace mgpu::planner;

static device::Topology machine(const std::string &name) {
  auto topology = device::openTopology("sim:" + name);
  EXPECT_TRUE(topology) << topology.error().message;
  return *topology;
}

TEST(LeastSquares, SolvesAndRefuses) {
  std::vector<double> x = solvePositive({4, 2, 2, 3}, {10, 9});
  ASSERT_EQ(x.size(), 2u);
  EXPECT_NEAR(x[0], 1.5, 1e-12);
  EXPECT_NEAR(x[1], 2, 1e-12);
  EXPECT_TRUE(solvePositive({1, 2, 2, 1}, {1, 1}).empty());
  std::vector<double> line = ridgeFit(std::vector<double>{1, 1, 1, 2, 1, 3}, 2,
                                      std::vector<double>{5, 7, 9}, 0);
  EXPECT_NEAR(line[0], 3, 1e-9);
  EXPECT_NEAR(line[1], 2, 1e-9);
}

static std::vector<CollectiveRow> curveRows(double fixed, double perByte,
                                            double perRoot) {
  std::vector<CollectiveRow> rows;
  for (double bytes = 1024; bytes < 2e9; bytes *= 4)
    rows.push_back({90, CollectiveOp::AllReduce, 8, bytes,
                    fixed + perByte * bytes + perRoot * std::sqrt(bytes)});
  return rows;
}

TEST(CollectiveCurve, FindsTheCoefficientsOfItsOwnForm) {
  CollectiveCurve curve = CollectiveCurve::fit(curveRows(20, 3e-6, 0.01));
  EXPECT_NEAR(curve.fixedUs, 20, 1e-3);
  EXPECT_NEAR(curve.usPerByte, 3e-6, 1e-10);
  EXPECT_NEAR(curve.usPerRoot, 0.01, 1e-6);
  // Twice the links halve what is traffic, and not what is latency.
  EXPECT_NEAR(curve.usOnLinks(1e9, 2), 20 + 1500 + 0.01 * std::sqrt(0.5e9), 1);
  // A falling table must not give a negative term.
  CollectiveCurve odd = CollectiveCurve::fit(curveRows(20, 0, 0));
  EXPECT_GE(odd.usPerByte, 0);
  EXPECT_NEAR(odd.us(1e8), 20, 1e-6);
}

TEST(CollectiveTable, GivesBackWhatItKnowsAndFillsGaps) {
  std::vector<CollectiveRow> rows = curveRows(20, 3e-6, 0.01), known;
  for (size_t i = 0; i < rows.size(); ++i)
    if (i != 8)
      known.push_back(rows[i]);
  Result<CollectiveTable> table = CollectiveTable::create(known);
  ASSERT_TRUE(table) << table.error().message;
  for (const CollectiveRow &row : rows)
    if (row.bytes >= 1 << 20) {
      EXPECT_NEAR(*table->us(90, row.op, 8, row.bytes) / row.us, 1,
                  row.bytes < 10e6 ? 0.2 : 0.08) // small ones weigh little
          << row.bytes;
    }
  EXPECT_FALSE(table->us(90, CollectiveOp::AllReduce, 4, 1e6));
  EXPECT_FALSE(table->us(100, CollectiveOp::AllReduce, 8, 1e6));
  EXPECT_FALSE(CollectiveTable::create({}));
}

TEST(Tables, FaultsNameTheLine) {
  auto message = [](std::string text) {
    auto rows = parseCollectives(
        "arch,op,groups,gpus_per_group,bytes,time_us\n" + text, "t.csv");
    return rows ? std::string() : rows.error().message;
  };
  EXPECT_EQ(message("sm_90,all_reduce,1,8,1024,3.5\n"), "");
  EXPECT_EQ(message("sm_90,all_reduce,1,8,1024\n"),
            "t.csv, line 2: 5 fields instead of 6");
  EXPECT_NE(message("sm_90,all_reduce,1,8,1024,-1\n").find("line 2: \"-1\""),
            std::string::npos);
  EXPECT_NE(message("gfx,all_reduce,1,8,1024,1\n").find("architecture"),
            std::string::npos);
  EXPECT_NE(message("sm_90,scan,1,8,1024,1\n").find("scan"), std::string::npos);
  EXPECT_NE(message("").find("no rows"), std::string::npos);
  EXPECT_FALSE(parseMatmuls("bytes\n", "m.csv"));
}

TEST(MatmulModel, ShippedOnesAreBetweenTheDataSheetAndReason) {
  for (uint32_t architecture : {90u, 100u})
    for (bool isBf16 : {true, false}) {
      const MatmulModel *model = MatmulModel::shipped(architecture, isBf16);
      ASSERT_TRUE(model);
      MatmulRates rates{architecture == 90 ? 989.5e6 : 2250e6,
                        architecture == 90 ? 3.35e6 : 8e6, 132};
      double before = 0;
      for (double size : {256, 512, 1024, 2048, 4096, 8192, 16384}) {
        const Product shape =
            productOf(MatmulRow{90, isBf16, 1, size, size, size});
        double us = model->us(shape, rates);
        EXPECT_GT(us, rooflineUs(shape, rates) * 0.95) << size;
        EXPECT_GT(us, before) << size;
        before = us;
      }
    }
  EXPECT_FALSE(MatmulModel::shipped(80, true));
}

TEST(Nccl, GivesThePublishedLatenciesAndPeaks) {
  device::Topology h100 = machine("dgx-h100");
  // The worked example of one node of 8: tree LL 6.8 + 2 * 7 * 0.6.
  auto ncclEstimate = [](auto &&...of) { return ncclEstimates(of...).front(); };
  NcclTime tiny = ncclEstimate(h100, CollectiveKind::AllReduce, 8, 8, 1);
  EXPECT_NEAR(tiny.us, 15.0, 0.3);
  EXPECT_EQ(tiny.algorithm.protocol, CollectiveAlgorithm::LL);
  EXPECT_NEAR(ncclEstimate(h100, CollectiveKind::AllGather, 8, 8, 1).us, 10.8,
              0.1);
  // Large: bytes * 2(n-1)/n over the ring's rate at most.
  double us = ncclEstimate(h100, CollectiveKind::AllReduce, 1e9, 8, 1).us;
  EXPECT_LT(us, 1.75e9 / 370.8e3 + 60);
  EXPECT_GT(us, 1e9 / 450e3);
  // Two nodes pay the network, A100 has no NVLS, PCIe is slower than NVLink.
  device::Topology two = machine("dgx-h100-x2");
  EXPECT_GT(ncclEstimate(two, CollectiveKind::AllReduce, 1e6, 16, 2).us,
            ncclEstimate(two, CollectiveKind::AllReduce, 1e6, 16, 1).us);
  EXPECT_NE(
      ncclEstimate(machine("dgx-a100"), CollectiveKind::AllReduce, 1e9, 8, 1)
          .algorithm.shape,
      CollectiveAlgorithm::Nvls);
  EXPECT_GT(
      ncclEstimate(machine("pcie-l40s-4"), CollectiveKind::AllReduce, 1e8, 4, 1)
          .us,
      4 * us / 10);
}

static Dag nodeDag(DagNode node, uint32_t devices) {
  Dag dag;
  dag.numDevices = devices;
  dag.spmd = true;
  node.devices = {{0}};
  dag.nodes.push_back(std::move(node));
  return dag;
}

TEST(Machine, SaysWhereEachFigureComesFrom) {
  Machine model(machine("dgx-h200"));
  DagNode node;
  node.work = OpaqueCall{true, CollectiveKind::AllReduce, 64 << 20, 8};
  Estimate reduce = model.estimate(nodeDag(node, 8), NodeId{0});
  EXPECT_EQ(reduce.origin, Origin::Measured);
  EXPECT_NEAR(reduce.us, 380, 60); // the table has 379.8
  node.work = OpaqueCall{true, CollectiveKind::AllReduce, 64 << 20, 6};
  EXPECT_EQ(model.estimate(nodeDag(node, 8), NodeId{0}).origin,
            Origin::Published);
  node.work = OpaqueCall{};
  node.isMatmul = true;
  node.flops = 2.0 * 4096 * 4096 * 4096;
  node.bytesRead = 2 * 2 * 4096 * 4096;
  node.bytesWritten = 2 * 4096 * 4096;
  Estimate product = model.estimate(nodeDag(node, 1), NodeId{0});
  EXPECT_EQ(product.origin, Origin::Measured);
  EXPECT_NEAR(product.us, 176, 15); // measured 176 on an H100
  node.isMatmul = false;
  EXPECT_EQ(model.estimate(nodeDag(node, 1), NodeId{0}).origin,
            Origin::Assumed);
  node.durationUs = 7;
  EXPECT_EQ(model.estimate(nodeDag(node, 1), NodeId{0}).us, 7);
  for (const Coefficient &coefficient : model.coefficients()) {
    EXPECT_GT(coefficient.value, 0) << coefficient.name;
    EXPECT_FALSE(coefficient.source.empty()) << coefficient.name;
  }
}

TEST(Machine, FollowsTheLinks) {
  device::Topology topology = machine("dgx-h200");
  Machine plain(topology);
  topology.link.bytesPerSecond *= 2;
  Machine twice(topology);
  auto us = [](const Machine &model, double bytes) {
    return model.collective(CollectiveKind::AllGather, bytes, 8, 1).us;
  };
  EXPECT_NEAR(us(twice, 1e9) / us(plain, 1e9), 0.5, 0.02);
  EXPECT_GT(us(twice, 1e4) / us(plain, 1e4), 0.95);
}

/// A DGX H100 on which a few things were measured.
static device::Topology calibratedMachine() {
  device::Topology topology = machine("dgx-h100");
  device::Topology::Calibration &c = topology.calibration.emplace();
  c.launchUs = 2;
  c.copyLatencyUs = 5;
  c.source = "measured";
  c.collectives = {{"all_reduce", 4, 1000, 10}, {"all_reduce", 4, 100000, 40}};
  c.matmuls = {{"bf16", 100, 100, 100, 2}}; // 1e6 operations per microsecond
  c.contention = {{"copy", "kernel", 1.75}};
  c.besideKernel = {{8, 1.125}, {64, 1.5}};
  return topology;
}

TEST(Calibration, CollectivesAreThoseMeasured) {
  const Machine model(calibratedMachine());
  auto us = [&](double bytes, uint32_t ranks = 4) {
    return model.collective(CollectiveKind::AllReduce, bytes, ranks, 1);
  };
  EXPECT_EQ(us(1000).us, 10);
  EXPECT_EQ(us(1000).origin, Origin::Measured);
  EXPECT_EQ(us(1000).how, "calibrated all_reduce of 4");
  EXPECT_EQ(us(8).us, 10);
  EXPECT_NEAR(us(10000).us, 20, 1e-9); // half way in the logarithms
  EXPECT_NEAR(us(1e6).us, 400, 1e-9);
  // The other models are asked about what was not measured.
  EXPECT_NE(us(1000, 8).how, "calibrated all_reduce of 8");
}

// The facts of a kernel say which product it is: its sums are of f32 here, and
// counts of bytes would make it another one.
TEST(Machine, ReadsTheProductOfAKernel) {
  Machine model(machine("dgx-h200"));
  DagNode node;
  KernelCall call{KernelId{0}, {64, 64, 1}, {}};
  node.work = call;
  node.flops = 2.0 * 4096 * 4096 * 4096;
  node.bytesRead = 2 * 2 * 4096 * 4096;
  node.bytesWritten = 4 * 4096 * 4096;
  Dag dag = nodeDag(node, 1);
  KernelFacts facts;
  facts.product =
      Product{4096, 4096, 4096, 1, ElementType::BF16, ElementType::F32};
  dag.kernels.push_back({.name = "k",
                         .hash = {},
                         .source = MlirKernel{"module {}"},
                         .location = {},
                         .block = {64, 1, 1},
                         .numArguments = 0,
                         .facts = facts});
  const Estimate whole = model.estimate(dag, NodeId{0});
  EXPECT_EQ(whole.origin, Origin::Measured);
  EXPECT_NEAR(whole.us, 176, 15);
  call.part = GridPart{{0, 0, 0}, {64, 32, 1}};
  dag.nodes[0].work = call;
  EXPECT_NEAR(model.estimate(dag, NodeId{0}).us, whole.us / 2, 15);
  // Without facts it may be anything, and takes the time of its bytes and
  // operations on the slower units.
  dag.kernels[0].facts = {};
  EXPECT_TRUE(dag.kernels[0].mayBeProduct());
  EXPECT_EQ(model.estimate(dag, NodeId{0}).origin, Origin::Assumed);
  EXPECT_GT(model.estimate(dag, NodeId{0}).us, whole.us);
}

TEST(Calibration, NothingIsTakenOffMeasuredRates) {
  Dag dag;
  DagNode node;
  node.flops = 1e9;
  node.work = OpaqueCall{};
  dag.nodes.push_back(node);
  const Machine model(calibratedMachine());
  EXPECT_NEAR(model.durationUs(dag, {0}), 2 + 1e9 / 67e6, 1e-9);
  dag.nodes[0].isMatmul = true;
  EXPECT_NEAR(model.durationUs(dag, {0}), 2 + 1e9 / 1e6, 1e-9);
  const std::set<std::string> notMeasured{"kernel.full_from", "kernel.load",
                                          "kernel.resident", "kernel.sectors",
                                          "nic"};
  for (const Coefficient &each : model.coefficients())
    if (!notMeasured.contains(each.name)) {
      EXPECT_EQ(each.origin, Origin::Measured) << each.name;
    }
}

TEST(CostModel, KernelBesideCollectiveKeepsTheMachinesShare) {
  const device::Topology named = machine("h100-hbm2e-500w");
  const double share = named.rate("beside_collective_share")->value;
  EXPECT_DOUBLE_EQ(
      contentionOf(named).of(WorkClass::Kernel, WorkClass::Collective),
      1 / share);
  EXPECT_GT(contentionOf(named.atEnd(true))
                .of(WorkClass::Kernel, WorkClass::Collective),
            1 / share);
  EXPECT_DOUBLE_EQ(contentionOf(machine("dgx-h100"))
                       .of(WorkClass::Kernel, WorkClass::Collective),
                   1 / 0.85);
}

TEST(Calibration, ContentionIsThatMeasured) {
  std::vector<Coefficient> list;
  const Contention factors = contentionOf(calibratedMachine(), &list);
  EXPECT_EQ(factors.of(WorkClass::Copy, WorkClass::Kernel), 1.75);
  EXPECT_EQ(factors.of(WorkClass::Kernel, WorkClass::Kernel), 1.5);
  const Contention assumed = contentionOf(machine("dgx-h100"));
  EXPECT_EQ(factors.of(WorkClass::Kernel, WorkClass::Copy),
            assumed.of(WorkClass::Kernel, WorkClass::Copy));
  size_t found = 0;
  for (const Coefficient &each : list)
    if (each.name == "contention.copy_beside_kernel") {
      EXPECT_EQ(each.origin, Origin::Measured);
      ++found;
    }
  EXPECT_EQ(found, 1u);
}
