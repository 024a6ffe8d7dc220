// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Examples and random programs on several GPUs that are not there: a process
// or a thread for each, an NCCL that moves their data, and the bits of the host
// target.
#include "tests/conformance/CollectivePrograms.h"
#include "tests/conformance/CudaPrograms.h"
#include "tests/conformance/ExampleProgram.h"
#include "tests/conformance/RandomProgram.h"
#include "tests/distributed/Case.h"
#include "tests/unit/Sweep.h"
#include "tests/unit/cuda/Ranks.h"

#include "capture/graph/Communication.h"
#include "capture/ranks/Ranks.h"
#include "device/host/HostDriver.h"
#include "device/tcp/TcpChannel.h"

#include <gtest/gtest.h>

#include <csignal>
#include <thread>

using namespace mgpu;
using namespace mgpu::conformance;

namespace {

bool isVisible(const planner::Buffer &buffer) {
  return buffer.role == planner::BufferRole::Argument ||
         buffer.role == planner::BufferRole::Result;
}

capture::RankJob::Open opener(const CudaPrograms &programs, uint64_t seed) {
  return [&programs, seed](uint32_t rank, std::function<Result<void>()> watch) {
    return programs.openRank(rank, seed, std::move(watch));
  };
}

capture::Ranks::Options gpuOptions() {
  capture::Ranks::Options options;
  options.deadline = std::chrono::seconds(20);
  options.farewell = fake::rankComplaints;
  return options;
}

/// Those that the host target reads and gives back.
template <typename Gpus>
void giveInputs(Gpus &gpus, const planner::Dag &dag, const HostData &inputs) {
  for (uint32_t b = 0; b < dag.buffers.size(); ++b)
    if (auto given = inputs.find(dag.buffers[b].name);
        given != inputs.end() && isVisible(dag.buffers[b]))
      std::copy_n(given->second.begin(), gpus.hostBuffer({b}).size(),
                  gpus.hostBuffer({b}).begin());
}
template <typename Gpus>
HostData takeOutputs(Gpus &gpus, const planner::Dag &dag) {
  HostData data;
  for (uint32_t b = 0; b < dag.buffers.size(); ++b)
    if (isVisible(dag.buffers[b])) {
      auto bytes = gpus.hostBuffer({b});
      data[dag.buffers[b].name].assign(bytes.begin(), bytes.end());
    }
  return data;
}

Result<HostData> onGpus(const CudaPrograms &programs, size_t number,
                        const planner::Dag &dag, const planner::Plan &plan,
                        uint64_t seed, const HostData &inputs,
                        uint64_t numReplays) {
  fake::FakeWorld::create();
  MGPU_TRY_ASSIGN(auto gpus,
                  capture::Ranks::start(dag, plan, programs.objects(number),
                                        opener(programs, seed), gpuOptions()));
  giveInputs(*gpus, dag, inputs);
  MGPU_TRY(gpus->load());
  std::vector<double> us(numReplays);
  MGPU_TRY(gpus->replay(us));
  MGPU_TRY(gpus->fetch());
  HostData data = takeOutputs(*gpus, dag);
  MGPU_TRY(gpus->replayTimed());
  MGPU_TRY(gpus->close());
  return data;
}

Result<HostData> onThreads(const CudaPrograms &programs, size_t number,
                           const planner::Dag &dag, const planner::Plan &plan,
                           uint64_t seed, const HostData &inputs,
                           uint64_t numReplays) {
  fake::FakeWorld::create();
  programs.readyThreads(dag.numDevices, seed);
  capture::Ranks::Options options;
  options.policy = capture::RankPolicy::Threads;
  options.deadline = std::chrono::seconds(20);
  HostData data;
  {
    MGPU_TRY_ASSIGN(
        auto gpus,
        capture::Ranks::start(
            dag, plan, programs.objects(number),
            [&programs](uint32_t rank, std::function<Result<void>()> watch) {
              return programs.openThread(rank, std::move(watch));
            },
            options));
    giveInputs(*gpus, dag, inputs);
    MGPU_TRY(gpus->load());
    for (uint64_t k = 0; k < numReplays; ++k)
      MGPU_TRY(gpus->replay());
    MGPU_TRY(gpus->fetch());
    data = takeOutputs(*gpus, dag);
  }
  if (std::string complaint = fake::rankComplaints(); !complaint.empty())
    return fail(ErrorKind::Internal, complaint);
  return data;
}

/// One of several processes that share no memory, as on machines of their own:
/// every second rank says that it is on another one.
Result<HostData> asRemote(const CudaPrograms &programs, size_t number,
                          const planner::Dag &dag, const planner::Plan &plan,
                          uint64_t seed, const HostData &inputs,
                          uint64_t numReplays, device::TcpPlace place) {
  const std::chrono::seconds deadline(20);
  MGPU_TRY_ASSIGN(auto channel, device::joinByTcp(place, deadline));
  device::MessageRendezvous others(std::move(channel), deadline);
  MGPU_TRY(others.tellNode(place.rank % 2 ? "one" : "another"));
  const device::HostPart split = device::hostPart(dag.numDevices, others);
  const capture::RemotePart part{split.here.first, split.here.count,
                                 split.ranks, &others};
  programs.readyThreads(part.count, seed + place.rank);
  auto open = [&](uint32_t rank, std::function<Result<void>()> watch) {
    return programs.openThread(rank, std::move(watch), part.first);
  };
  capture::Ranks::Options options;
  options.deadline = deadline;
  MGPU_TRY_ASSIGN(auto gpu, capture::runGpusWithOthers(dag, plan,
                                                       programs.objects(number),
                                                       part, open, options));
  giveInputs(*gpu, dag, inputs);
  MGPU_TRY(gpu->load());
  std::vector<double> us(numReplays);
  MGPU_TRY(gpu->replay(us));
  MGPU_TRY(gpu->fetch());
  HostData data;
  if (place.rank == 0)
    data = takeOutputs(*gpu, dag);
  MGPU_TRY_ASSIGN(const auto timed, gpu->replayTimed());
  if (timed.size() != dag.numDevices)
    return fail(ErrorKind::Internal, "not all GPUs say their times");
  MGPU_TRY(gpu->close());
  gpu.reset();
  if (std::string complaint = fake::rankComplaints(); !complaint.empty())
    return fail(ErrorKind::Internal, complaint);
  return data;
}

/// Each has a GPU or two.
Result<HostData> onRemotes(const CudaPrograms &programs, size_t number,
                           const planner::Dag &dag, const planner::Plan &plan,
                           uint64_t seed, const HostData &inputs,
                           uint64_t numReplays) {
  fake::FakeWorld::create();
  MGPU_TRY_ASSIGN(auto listening, device::listenOn(device::loopbackAt(0)));
  const uint16_t port = device::localOf(listening).port();
  listening = {};
  const uint32_t count =
      seed % 2 ? dag.numDevices : dag.numDevices - dag.numDevices / 2;
  const std::vector<std::string> said =
      fake::forkRanks(count, [&](uint32_t rank) {
        auto data = asRemote(programs, number, dag, plan, seed, inputs,
                             numReplays, {rank, count, "127.0.0.1", port});
        Bytes out;
        append(out, data ? std::string() : data.error().message);
        putMap(out, data ? *data : HostData());
        return std::string(reinterpret_cast<const char *>(out.data()),
                           out.size());
      });
  HostData data;
  for (const std::string &each : said) {
    ByteReader reader(std::as_bytes(std::span(each)));
    if (std::string fault = reader.text(); !fault.empty())
      return fail(ErrorKind::Internal, fault);
    takeMap(reader, data);
  }
  return data;
}

void checkRanks(const CudaPrograms &programs, size_t number,
                const planner::Dag &dag, const std::string &scheduler,
                const HostData &inputs, const HostData &expected,
                uint32_t numReplays, decltype(onGpus) &run = onGpus) {
  auto plan = makePlan(dag, scheduler);
  ASSERT_TRUE(plan) << scheduler << ": " << plan.error().message;
  uint64_t seed = std::hash<std::string>()(scheduler) + number;
  auto got = run(programs, number, dag, *plan, seed, inputs, numReplays);
  ASSERT_TRUE(got) << scheduler << ": " << got.error().message;
  ASSERT_EQ(difference(expected, *got), "") << "scheduler " << scheduler;
}

class GpusExamples : public testing::TestWithParam<Example> {};

TEST_P(GpusExamples, GiveTheBitsOfTheHost) {
  ImportOutcome outcome = importExample(GetParam());
  ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
  const planner::Dag &dag = *outcome.dag;
  ASSERT_LE(dag.numDevices, fake::Meeting::maxRanks);
  auto inputs = randomInputs(dag, 7);
  ASSERT_TRUE(inputs) << inputs.error().message;
  auto objects = KernelCache().compile(dag);
  ASSERT_TRUE(objects) << objects.error().message;
  auto serial = makePlan(dag, "serial");
  ASSERT_TRUE(serial) << serial.error().message;
  auto expected = execute(dag, *serial, *objects, *inputs, 1, 2);
  ASSERT_TRUE(expected) << expected.error().message;
  std::mt19937_64 random(3);
  CudaPrograms programs;
  auto number = programs.add(dag, random);
  ASSERT_TRUE(number) << number.error().message;
  Result<void> compiled = programs.compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  RecordProperty("devices", int(dag.numDevices));
  for (const char *scheduler : {"serial", "list", "1", "2"}) {
    checkRanks(programs, *number, dag, scheduler, *inputs, *expected, 2);
    if (HasFatalFailure())
      return;
  }
  for (const char *scheduler : {"list", "1"}) {
    SCOPED_TRACE("threads");
    checkRanks(programs, *number, dag, scheduler, *inputs, *expected, 2,
               onThreads);
    if (HasFatalFailure())
      return;
  }
  {
    SCOPED_TRACE("processes that share no memory");
    for (const char *scheduler : {"1", "2", "list"})
      checkRanks(programs, *number, dag, scheduler, *inputs, *expected, 2,
                 onRemotes);
    if (HasFatalFailure())
      return;
  }
  programs.useWindows = true;
  for (const char *scheduler : {"list", "1"}) {
    SCOPED_TRACE("windows");
    checkRanks(programs, *number, dag, scheduler, *inputs, *expected, 2);
    if (HasFatalFailure())
      return;
  }
  SCOPED_TRACE("threads and windows");
  checkRanks(programs, *number, dag, "list", *inputs, *expected, 2, onThreads);
}

INSTANTIATE_TEST_SUITE_P(All, GpusExamples, testing::ValuesIn(allExamples()),
                         exampleName);

TEST(GpusCollectives, GiveTheBitsOfTheHost) {
  std::mt19937_64 random(5);
  CudaPrograms programs;
  constexpr ElementType types[] = {ElementType::I8,       ElementType::BF16,
                                   ElementType::I32,      ElementType::I64,
                                   ElementType::F16,      ElementType::Index,
                                   ElementType::F32,      ElementType::F64,
                                   ElementType::F8E4M3FN, ElementType::F8E5M2};
  for (ElementType type : std::span(types).first(sweep(2, std::size(types)))) {
    SCOPED_TRACE(toString(type));
    ImportRequest request;
    request.text = printProgram(makeCollectiveProgram(type));
    request.name = std::string(toString(type));
    ImportOutcome outcome = Importer().import(request);
    ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
    const planner::Dag &dag = *outcome.dag;
    auto number = programs.add(dag, random);
    ASSERT_TRUE(number) << number.error().message;
    auto inputs = randomInputs(dag, 3);
    ASSERT_TRUE(inputs) << inputs.error().message;
    auto serial = makePlan(dag, "serial");
    ASSERT_TRUE(serial) << serial.error().message;
    auto expected = execute(dag, *serial, {}, *inputs, 1, 1);
    ASSERT_TRUE(expected) << expected.error().message;
    for (bool windows : {false, true}) {
      SCOPED_TRACE(windows ? "windows" : "no windows");
      programs.useWindows = windows;
      checkRanks(programs, *number, dag, "1", *inputs, *expected, 1);
      if (HasFatalFailure())
        return;
    }
    checkRanks(programs, *number, dag, "list", *inputs, *expected, 1,
               onThreads);
  }
}

/// Those whose GPUs meet in communications alone; the others are refused.
TEST(GpusRandomPrograms, GiveTheBitsOfTheHost) {
  const uint64_t count = sweep(12, 24);
  Importer importer;
  KernelCache cache;
  CudaPrograms programs;
  std::vector<planner::Dag> dags;
  std::mt19937_64 random(5);
  for (uint64_t seed = 0; seed < count; ++seed) {
    RandomProgram program = makeRandomProgram(seed);
    if (seed % 2)
      addRandomLoop(program, seed);
    ImportRequest request;
    request.text = printProgram(program);
    request.name = "seed" + std::to_string(seed);
    ImportOutcome outcome = importer.import(request);
    ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
    dags.push_back(std::move(*outcome.dag));
    auto number = programs.add(dags.back(), random);
    ASSERT_TRUE(number) << number.error().message;
  }
  Result<void> compiled = programs.compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  size_t ran = 0, refused = 0;
  for (uint64_t seed = 0; seed < count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const planner::Dag &dag = dags[seed];
    if (dag.numDevices > fake::Meeting::maxRanks)
      continue;
    if (Result<void> may = capture::checkAcrossRanks(dag); !may) {
      EXPECT_EQ(may.error().kind, ErrorKind::Unsupported);
      ++refused;
      continue;
    }
    auto inputs = randomInputs(dag, seed);
    ASSERT_TRUE(inputs) << inputs.error().message;
    auto objects = cache.compile(dag);
    ASSERT_TRUE(objects) << objects.error().message;
    auto serial = makePlan(dag, "serial");
    ASSERT_TRUE(serial) << serial.error().message;
    auto expected = execute(dag, *serial, *objects, *inputs, 1, 1);
    ASSERT_TRUE(expected) << expected.error().message;
    programs.useWindows = seed % 2;
    for (const char *scheduler : {"list", "1"}) {
      checkRanks(programs, seed, dag, scheduler, *inputs, *expected, 1,
                 *scheduler == '1' ? onThreads : onGpus);
      if (HasFatalFailure())
        return;
    }
    checkRanks(programs, seed, dag, "2", *inputs, *expected, 1, onRemotes);
    if (HasFatalFailure())
      return;
    ++ran;
  }
  RecordProperty("ran", int(ran));
  RecordProperty("refused", int(refused));
  EXPECT_GT(ran, 0u);
}

/// Two devices that sum what they hold, as often as they are told to.
class RanksFailure : public testing::Test {
protected:
  void SetUp() override {
    ImportRequest request;
    request.name = "sum.mlir";
    request.text = R"mlir(
mgpu.device_config @config #mgpu.device_config<numDevices = 2>
func.func @main(%x: memref<16xf32>, %y: memref<16xf32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d0 = mgpu.get_device %c0 : !mgpu.device
  %d1 = mgpu.get_device %c1 : !mgpu.device
  %s0 = mgpu.create_stream %d0 : !mgpu.device -> !mgpu.stream
  %s1 = mgpu.create_stream %d1 : !mgpu.device -> !mgpu.stream
  %comm = mgpu.create_communicator %d0, %d1 : !mgpu.device, !mgpu.device -> !mgpu.communicator
  %a = mgpu.alloc %d0 : !mgpu.device -> memref<16xf32>
  %b = mgpu.alloc %d1 : !mgpu.device -> memref<16xf32>
  mgpu.memcpy %a, %x, %d0, %host : memref<16xf32>, memref<16xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %b, %y, %d1, %host : memref<16xf32>, memref<16xf32>, !mgpu.device, !mgpu.device
  mgpu.all_reduce %a, %a, %comm, sum stream %s0 : !mgpu.stream : memref<16xf32>, memref<16xf32>, !mgpu.communicator
  mgpu.all_reduce %b, %b, %comm, sum stream %s1 : !mgpu.stream : memref<16xf32>, memref<16xf32>, !mgpu.communicator
  mgpu.memcpy %x, %a, %host, %d0 stream %s0 : !mgpu.stream : memref<16xf32>, memref<16xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %y, %b, %host, %d1 stream %s1 : !mgpu.stream : memref<16xf32>, memref<16xf32>, !mgpu.device, !mgpu.device
  mgpu.sync_device %d0 : !mgpu.device
  mgpu.sync_device %d1 : !mgpu.device
  return
}
)mlir";
    Importer importer;
    ImportOutcome outcome = importer.import(request);
    ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
    dag = std::move(*outcome.dag);
    ASSERT_EQ(dag.numDevices, 2u);
    std::mt19937_64 random(3);
    auto added = programs.add(dag, random);
    ASSERT_TRUE(added) << added.error().message;
    number = *added;
    auto made = makePlan(dag, "list");
    ASSERT_TRUE(made) << made.error().message;
    plan = std::move(*made);
    fake::FakeWorld::create();
  }

  /// `change` is done to rank 1's process once its driver is open.
  Result<std::unique_ptr<capture::Ranks>>
  start(capture::Ranks::Options options, std::function<void()> change = {}) {
    auto deadline = options.deadline;
    return capture::Ranks::start(
        dag, plan, programs.objects(number),
        [this, change, deadline](uint32_t rank,
                                 std::function<Result<void>()> watch)
            -> Result<std::unique_ptr<device::Driver>> {
          MGPU_TRY_ASSIGN(auto driver,
                          programs.openRank(rank, 5, watch, deadline));
          if (rank == 1 && change)
            change();
          return driver;
        },
        std::move(options));
  }
  static capture::Ranks::Options
  quick(std::chrono::milliseconds deadline = std::chrono::seconds(20)) {
    capture::Ranks::Options options = gpuOptions();
    options.deadline = deadline;
    options.grace = std::chrono::seconds(1);
    options.names = {"cuda:0", "cuda:1"};
    return options;
  }
  static void expectIn(const std::string &text,
                       std::initializer_list<const char *> words) {
    for (const char *each : words)
      EXPECT_NE(text.find(each), std::string::npos) << text;
  }

  planner::Dag dag;
  planner::Plan plan;
  CudaPrograms programs;
  size_t number = 0;
};

TEST_F(RanksFailure, ADeadRankEndsTheOthersAndIsNamed) {
  auto gpus = start(quick());
  ASSERT_TRUE(gpus) << gpus.error().message;
  ASSERT_TRUE((*gpus)->load());
  ASSERT_TRUE((*gpus)->replay());
  // Stopped, it leaves rank 0 in the collective; then it dies.
  kill((*gpus)->process(1), SIGSTOP);
  pid_t victim = (*gpus)->process(1);
  std::thread later([victim] {
    usleep(200'000);
    kill(victim, SIGKILL);
  });
  auto started = std::chrono::steady_clock::now();
  auto ran = (*gpus)->replay();
  later.join();
  ASSERT_FALSE(ran);
  EXPECT_LT(std::chrono::steady_clock::now() - started,
            std::chrono::seconds(5));
  expectIn(ran.error().message,
           {"the replay on several GPUs failed; rank 1 (cuda:1) was killed",
            "rank 0 (cuda:0) given up, because another GPU failed"});
  auto again = (*gpus)->replay();
  ASSERT_FALSE(again);
  expectIn(again.error().message, {"the GPUs were lost before"});
}

TEST_F(RanksFailure, ARankThatDiesInsideTheCollectiveLeavesItsName) {
  // It comes to a replay, and ends once the other is in the collective.
  auto gpus = start(quick(), [] {
    fake::FakeCuda::instance().onLaunch = [](uint64_t launch) {
      if (launch != 3)
        return;
      usleep(500'000);
      _exit(9);
    };
  });
  ASSERT_TRUE(gpus) << gpus.error().message;
  Result<void> loaded = (*gpus)->load();
  ASSERT_TRUE(loaded) << loaded.error().message;
  std::vector<double> us(5);
  auto ran = (*gpus)->replay(us);
  ASSERT_FALSE(ran);
  expectIn(ran.error().message,
           {"rank 1 (cuda:1) ended by itself with exit code 9",
            "rank 0 (cuda:0) a replay on cuda:0: given up",
            "sum.mlir:", "among devices 0, 1 has not ended"});
}

TEST_F(RanksFailure, ARankThatIsStuckIsEndedAfterTheDeadline) {
  auto gpus = start(quick(std::chrono::milliseconds(500)));
  ASSERT_TRUE(gpus) << gpus.error().message;
  ASSERT_TRUE((*gpus)->load());
  kill((*gpus)->process(1), SIGSTOP);
  auto started = std::chrono::steady_clock::now();
  auto ran = (*gpus)->replay();
  ASSERT_FALSE(ran);
  EXPECT_LT(std::chrono::steady_clock::now() - started,
            std::chrono::seconds(8));
  expectIn(ran.error().message, {"rank 1 (cuda:1) gave no answer and was ended",
                                 "rank 0 (cuda:0) waited 1500 ms for rank 1"});
}

TEST_F(RanksFailure, AnErrorOfOneRankIsTheErrorOfAll) {
  auto gpus = start(quick(), [] {
    fake::FakeCuda::instance().launchFault = CUDA_ERROR_ILLEGAL_ADDRESS;
  });
  ASSERT_FALSE(gpus);
  EXPECT_EQ(gpus.error().kind, ErrorKind::Invalid);
  expectIn(gpus.error().message,
           {"building on several GPUs failed; rank 1 (cuda:1)",
            "CUDA_ERROR_ILLEGAL_ADDRESS", "rank 0 (cuda:0)"});
}

TEST_F(RanksFailure, GpusMeetInCommunicationsAlone) {
  // What GPU 1 uploads is what GPU 0 brought to the host.
  planner::NodeId first{0}, second{0};
  for (uint32_t n = 0; n < dag.nodes.size(); ++n) {
    dag.nodes[n].phase = planner::Phase::Replay;
    if (dag.nodes[n].devices == std::vector<DeviceId>{{0}})
      first = {n};
    if (dag.nodes[n].devices == std::vector<DeviceId>{{1}})
      second = {n};
  }
  ASSERT_LT(first, second);
  dag.edges.push_back({first, second, planner::DepKind::Data});
  dag.normalize();
  auto gpus = start(quick());
  ASSERT_FALSE(gpus);
  EXPECT_EQ(gpus.error().kind, ErrorKind::Unsupported);
  const std::string lines[] = {dag.node(first).location,
                               dag.node(second).location};
  expectIn(gpus.error().message,
           {lines[0].c_str(), lines[1].c_str(), "must follow", "cuda:K/2"});
}

} // namespace
