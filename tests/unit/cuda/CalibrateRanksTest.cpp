// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// `calibrate` on several GPUs that are not there, a process for each: what is
// written follows from the times that the doubles take.
#include "FakeCollective.h"
#include "Ranks.h"

#include "bench/profile/CalibrateRanks.h"
#include "planner/cost/TargetMachine.h"

#include <gtest/gtest.h>

namespace {

using namespace mgpu;
using namespace mgpu::device;
using namespace mgpu::fake;
using bench::CalibrationKernel;
using std::chrono::milliseconds;

constexpr uint64_t largestBytes = 65536;
/// Rank 1 is that much slower than the others, in everything.
constexpr double slowness = 2;
constexpr uint32_t kernelBlocks = 4;

// Microseconds, of GPUs that are not slow.
double kernelUs(double count) { return 40 + 10 * count; }
double copyUs(double bytes) { return 5 + bytes / 1000; }
/// A call of NCCL's, by what it is given itself.
double callUs(const std::string &name, int ranks, double bytes) {
  const std::map<std::string, double> starts{{"ncclAllReduce", 10},
                                             {"ncclAllGather", 20},
                                             {"ncclReduceScatter", 30},
                                             {"ncclBroadcast", 40},
                                             {"transfers", 50}};
  return starts.at(name) + 7 * ranks + bytes / 64;
}
double callUs(const Work &work, int ranks) {
  if (work.transfers.empty())
    return callUs(work.name, ranks,
                  double(work.count) * double(bytesOf(work.type)));
  double sent = 0, received = 0;
  for (const Transfer &each : work.transfers)
    (each.isSend ? sent : received) += double(each.bytes);
  return callUs(work.name, ranks, std::max(sent, received));
}

/// What a row of the topology should say: its bytes are of the larger side,
/// NCCL is given a slice of them where the operation has slices.
double expectedUs(const Topology::Calibration::Collective &row,
                  uint32_t devices) {
  const auto bytes = double(row.bytes);
  const int ranks = int(row.ranks);
  if (row.op == "all_reduce")
    return callUs("ncclAllReduce", ranks, bytes);
  if (row.op == "all_gather")
    return callUs("ncclAllGather", ranks, bytes / ranks);
  if (row.op == "reduce_scatter")
    return callUs("ncclReduceScatter", ranks, bytes / ranks);
  if (row.op == "broadcast")
    return callUs("ncclBroadcast", ranks, bytes);
  if (row.op == "all_to_all")
    return callUs("transfers", ranks, bytes);
  EXPECT_EQ(row.op, "send_recv"); // on the communicator of all
  return callUs("transfers", int(devices), bytes);
}

CalibrationKernel measuredKernel(const std::string &entry) {
  kernels::KernelImage object;
  object.entry = entry;
  object.arch = "sm_90";
  object.setBytes(fakeCubin({entry}));
  CalibrationKernel out;
  out.name = entry;
  out.object = kernels::encodeImage(object);
  out.grid = {kernelBlocks, 1, 1};
  out.arguments = {{4096, 0}};
  out.flops = 250e3;
  out.bytes = 125e3;
  return out;
}

Result<bench::CalibrationInput> measuredWith(Driver &driver, uint32_t devices) {
  bench::CalibrationInput out{driver,
                              measuredKernel("memory"),
                              measuredKernel("arithmetic"),
                              {{"bf16", 64, 64, 64, measuredKernel("product")}},
                              {},
                              "measured on doubles: "};
  out.about.name = "fake";
  out.about.devices = devices;
  out.about.device.name = "Fake GPU";
  out.about.device.architecture = 90;
  out.about.device.memoryBytes = 64 << 20;
  out.about.device.smCount = 3;
  out.largestBytes = largestBytes;
  out.secondsPerFigure = 0.002;
  return out;
}

/// A fresh machine in the process of a rank.
void makeMachine(uint32_t rank) {
  const double times = rank == 1 ? slowness : 1;
  FakeCuda &fake = freshMachine(rank);
  for (const char *name : {"memory", "arithmetic", "product"}) {
    FakeKernel body;
    body.parameterSizes = {8, 48};
    body.run = [](void **, const unsigned *, const unsigned *) {};
    fake.kernels[name] = body;
  }
  fake.nodeMs = [times](const Node &node) {
    double us = 0; // the target's own kernels, events, and marks
    if (node.params.type == CU_GRAPH_NODE_TYPE_KERNEL) {
      const auto &params = node.params.kernel;
      const auto &name = reinterpret_cast<Kernel *>(params.kern)->name;
      if (name == "memory" || name == "arithmetic" || name == "product")
        us = kernelUs(params.gridDimX);
    } else if (node.params.type == CU_GRAPH_NODE_TYPE_MEMCPY && !isMark(node)) {
      const CUDA_MEMCPY3D &copy = node.params.memcpy.copyParams;
      us = copyUs(double(copy.WidthInBytes * copy.Height * copy.Depth));
    }
    return times * us / 1000;
  };
  FakeNccl::reset().workMs = [times](const Work &work, int ranks) {
    return times * callUs(work, ranks) / 1000;
  };
}

class CalibrateRanksTest : public testing::Test {
protected:
  void SetUp() override { FakeWorld::create(); }
  static capture::Ranks::Options
  quick(milliseconds deadline = std::chrono::seconds(20)) {
    capture::Ranks::Options options;
    options.deadline = deadline;
    options.grace = std::chrono::seconds(1);
    options.names = {"cuda:0", "cuda:1", "cuda:2"};
    options.farewell = rankComplaints;
    return options;
  }
  /// `change` is done in rank 1's process before it measures.
  static Result<Topology> calibrate(uint32_t devices,
                                    capture::Ranks::Options options = quick(),
                                    std::function<void()> change = {},
                                    NcclOptions nccl = {}) {
    auto open = [deadline = options.deadline,
                 nccl](uint32_t rank, std::function<Result<void>()> watch) {
      makeMachine(rank);
      CudaOptions how = rankOptions(rank);
      how.watch = std::move(watch);
      how.deadline = deadline;
      how.nccl = nccl;
      return openRank(how);
    };
    return bench::calibrateRanks(
        devices, open, std::move(options), [devices, change](Driver &driver) {
          if (change && driver.part()->holds(DeviceId{1}))
            change();
          return measuredWith(driver, devices);
        });
  }
  static void expectIn(const std::string &text,
                       std::initializer_list<const char *> words) {
    for (const char *each : words)
      EXPECT_NE(text.find(each), std::string::npos) << text;
  }
};

void checkTimes(const Topology &measured, uint32_t devices) {
  auto near = [](double value, double expected, const std::string &what) {
    EXPECT_NEAR(value / expected, 1, 1e-3) << what << ", " << expected;
  };
  EXPECT_EQ(measured.devices, devices);
  const double us = slowness * kernelUs(kernelBlocks);
  near(measured.device.memoryBytesPerSecond, 125e3 / us * 1e6, "memory");
  near(measured.device.flopsPerSecond, 250e3 / us * 1e6, "FP32");
  near(measured.device.bf16FlopsPerSecond, 2.0 * 64 * 64 * 64 / us * 1e6,
       "BF16");
  const Topology::Calibration &c = *measured.calibration;
  near(c.launchUs, slowness * kernelUs(1), "a launch");
  near(c.copyLatencyUs, slowness * copyUs(4096), "the start of a copy");
  near(measured.hostLink.bytesPerSecond, 1000e6 / slowness, "host link");
  near(measured.link.bytesPerSecond, 64e6 / slowness, "link");
  ASSERT_EQ(c.matmuls.size(), 1u);
  near(c.matmuls[0].us, us, "a product");

  std::set<std::tuple<std::string, uint32_t, uint64_t>> rows;
  for (const auto &row : c.collectives) {
    near(row.us, slowness * expectedUs(row, devices),
         row.op + " of " + std::to_string(row.ranks) + " x " +
             std::to_string(row.bytes));
    rows.insert({row.op, row.ranks, row.bytes});
  }
  std::set<std::tuple<std::string, uint32_t, uint64_t>> expected;
  for (uint32_t ranks : std::set<uint32_t>{2, devices})
    for (uint64_t bytes : {uint64_t(4096), largestBytes})
      for (const char *op : {"all_reduce", "all_gather", "reduce_scatter",
                             "all_to_all", "broadcast"})
        expected.insert({op, ranks, bytes / (4 * ranks) * (4 * ranks)});
  for (uint64_t bytes : {uint64_t(4096), largestBytes})
    expected.insert({"send_recv", 2, bytes});
  EXPECT_EQ(rows, expected);
  EXPECT_EQ(c.collectives.size(), expected.size()); // none twice
}

TEST_F(CalibrateRanksTest, WhatIsWrittenIsTheSlowestGpus) {
  for (uint32_t devices : {2u, 3u}) {
    SCOPED_TRACE(devices);
    FakeWorld::create();
    auto measured = calibrate(devices);
    ASSERT_TRUE(measured) << measured.error().message;
    checkTimes(*measured, devices);
    // The double's events have between them what ran meanwhile.
    const Topology::Calibration &c = *measured->calibration;
    EXPECT_FALSE(c.contention.empty());
    for (const auto &each : c.contention)
      EXPECT_GE(each.factor, 1) << each.work << " beside " << each.beside;
    for (const auto &each : c.besideKernel)
      EXPECT_EQ(each.multiprocessors, 1u);
    for (const std::string &source :
         {measured->device.source, measured->link.source,
          measured->hostLink.source, c.source})
      EXPECT_EQ(source.find("measured on doubles: "), 0u) << source;
    EXPECT_NE(c.source.find("of each figure the slowest rank's"),
              std::string::npos);

    // What is written is planned with; a copy between GPUs is a send.
    const planner::Machine model(*measured);
    EXPECT_NEAR(model.collective(CollectiveKind::AllReduce, 65536, 2, 1).us,
                slowness * callUs("ncclAllReduce", 2, 65536), 1);
    planner::Dag dag;
    dag.numDevices = 2;
    for (int32_t k : {0, 1}) {
      planner::Buffer buffer;
      buffer.device = {k};
      buffer.sizeBytes = 4096;
      dag.buffers.push_back(buffer);
    }
    planner::DagNode node;
    node.devices = {{0}, {1}};
    node.work =
        planner::CopyCall{{0}, {1}, Box::flat(0, 4096), Box::flat(0, 4096)};
    dag.nodes.push_back(node);
    EXPECT_NEAR(model.estimate(dag, {0}).us,
                slowness * callUs("transfers", int(devices), 4096), 0.2);
  }
}

TEST_F(CalibrateRanksTest, WindowsAreMeasuredWhereTheyAreAsked) {
  NcclOptions nccl;
  nccl.windows = true;
  auto measured = calibrate(2, quick(), {}, nccl);
  ASSERT_TRUE(measured) << measured.error().message;
  checkTimes(*measured, 2); // no copies from or to other memory
}

TEST_F(CalibrateRanksTest, AFaultOfOneGpuIsTheErrorOfAll) {
  auto measured = calibrate(2, quick(), [] {
    FakeCuda::instance().onLaunch = [](uint64_t launch) {
      if (launch == 40)
        FakeCuda::instance().launchFault = CUDA_ERROR_ILLEGAL_ADDRESS;
    };
  });
  ASSERT_FALSE(measured);
  EXPECT_EQ(measured.error().kind, ErrorKind::Invalid);
  expectIn(measured.error().message,
           {"the calibration on several GPUs failed; rank 1 (cuda:1)",
            "CUDA_ERROR_ILLEGAL_ADDRESS",
            "rank 0 (cuda:0) given up, because another GPU failed"});
}

TEST_F(CalibrateRanksTest, AGpuThatIsLateOrDiesIsNamed) {
  auto late = calibrate(2, quick(milliseconds(500)), [] {
    FakeCuda::instance().onLaunch = [](uint64_t launch) {
      FakeCuda::instance().neverEnds = launch == 40;
    };
  });
  ASSERT_FALSE(late);
  expectIn(late.error().message,
           {"the calibration on several GPUs failed; ",
            "rank 1 (cuda:1) a replay on cuda:0 did not end within 500 ms",
            "rank 0 (cuda:0)"});
  FakeWorld::create();
  auto dead = calibrate(2, quick(), [] {
    FakeCuda::instance().onLaunch = [](uint64_t launch) {
      if (launch == 40)
        _exit(9);
    };
  });
  ASSERT_FALSE(dead);
  EXPECT_EQ(dead.error().kind, ErrorKind::Absent);
  expectIn(dead.error().message,
           {"rank 1 (cuda:1) ended by itself with exit code 9",
            "rank 0 (cuda:0) given up, because another GPU failed"});
}

} // namespace
