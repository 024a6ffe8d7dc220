// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several GPUs in one process, a thread for each: over a driver that is not
// there, with several GPUs, and an NCCL whose ranks are threads.
#include "FakeLock.h"
#include "Ranks.h"

#include "capture/ranks/Ranks.h"
#include "planner/cost/TargetMachine.h"
#include "planner/schedule/list/Schedulers.h"

#include <condition_variable>
#include <gtest/gtest.h>
#include <mutex>

namespace {

using namespace mgpu;
using namespace mgpu::fake;
using namespace mgpu::planner;
using capture::Ranks;
using std::chrono::milliseconds;

constexpr int64_t elements = 24;
constexpr uint64_t trips = 3;
constexpr int64_t firstTrip = 40, tripStep = 7;

/// Each device takes its row of x, and in each trip of a loop all sum what they
/// have; device k gives it to row k of y, and the trip it was in.
struct SumProgram {
  enum : uint32_t { X, Y, Trip, Seen, PerDevice };
  static uint32_t sum(uint32_t device) { return PerDevice + 2 * device; }
  static uint32_t seen(uint32_t device) { return PerDevice + 2 * device + 1; }
  /// Host memory that GPU 0 alone reads in each trip, and gives to `noted`.
  uint32_t note = 0, kept = 0, noted = 0;
  Dag dag;
  Plan plan;
};

SumProgram makeSumProgram(uint32_t devices) {
  SumProgram program;
  Dag &dag = program.dag;
  dag.name = "sum";
  dag.numDevices = devices;
  auto buffer = [&](std::string name, int32_t device, BufferRole role,
                    ElementType type, int64_t count) {
    Buffer made;
    made.name = std::move(name);
    made.device = {device};
    made.role = role;
    made.sizeBytes = uint64_t(count) * sizeBytes(type);
    made.elementType = type;
    made.shape = {count};
    dag.buffers.push_back(made);
  };
  const auto host = DeviceId::host().value;
  using enum ElementType;
  buffer("x", host, BufferRole::Argument, F32, elements * devices);
  buffer("y", host, BufferRole::Argument, F32, elements * devices);
  buffer("trip", host, BufferRole::HostLocal, I64, 1);
  buffer("seen", host, BufferRole::Argument, I64, devices);
  for (uint32_t k = 0; k < devices; ++k) {
    buffer("sum" + std::to_string(k), int32_t(k), BufferRole::Resident, F32,
           elements);
    buffer("seen" + std::to_string(k), int32_t(k), BufferRole::Resident, I64,
           1);
  }
  program.note = uint32_t(dag.buffers.size());
  buffer("note", host, BufferRole::Argument, I64, 1);
  program.kept = program.note + 1;
  buffer("kept", 0, BufferRole::Resident, I64, 1);
  program.noted = program.kept + 1;
  buffer("noted", host, BufferRole::Argument, I64, 1);
  dag.loop.trips = trips;
  dag.loop.inductions = {{{SumProgram::Trip}, firstTrip, tripStep}};

  auto add = [&](std::string name, Phase phase, std::vector<DeviceId> on,
                 auto work, std::vector<BufferUse> uses) {
    DagNode node;
    node.name = std::move(name);
    node.location = "sum.mlir:1:1";
    node.phase = phase;
    node.devices = std::move(on);
    node.work = std::move(work);
    node.uses = std::move(uses);
    dag.nodes.push_back(std::move(node));
  };
  auto copy = [&](std::string name, Phase phase, uint32_t device, uint32_t from,
                  Box fromBox, uint32_t to, Box toBox) {
    add(std::move(name), phase, {{int32_t(device)}},
        CopyCall{{from}, {to}, fromBox, toBox},
        {{{from}, fromBox, true, false}, {{to}, toBox, false, true}});
  };
  const Box row{0, {elements}, {4}, 4}, one{0, {1}, {8}, 8};
  for (uint32_t k = 0; k < devices; ++k)
    copy("up", Phase::Prologue, k, SumProgram::X,
         {k * elements * 4, {elements}, {4}, 4}, SumProgram::sum(k), row);
  CollectiveCall call;
  std::vector<DeviceId> all;
  std::vector<BufferUse> uses;
  for (uint32_t k = 0; k < devices; ++k) {
    const BufferId own{SumProgram::sum(k)};
    all.push_back({int32_t(k)});
    call.members.push_back({{int32_t(k)}, own, own, row, row});
    uses.push_back({own, row, true, true});
  }
  add("the sum", Phase::Replay, all, call, uses);
  for (uint32_t k = 0; k < devices; ++k)
    copy("trip", Phase::Replay, k, SumProgram::Trip, one, SumProgram::seen(k),
         one);
  copy("note", Phase::Replay, 0, program.note, one, program.kept, one);
  copy("noted", Phase::Epilogue, 0, program.kept, one, program.noted, one);
  for (uint32_t k = 0; k < devices; ++k) {
    copy("down", Phase::Epilogue, k, SumProgram::sum(k), row, SumProgram::Y,
         {k * elements * 4, {elements}, {4}, 4});
    copy("seen", Phase::Epilogue, k, SumProgram::seen(k), one, SumProgram::Seen,
         {k * 8, {1}, {8}, 8});
  }
  // Within a device one after the other; phases follow each other anyway.
  for (uint32_t to = 0; to < dag.nodes.size(); ++to)
    for (uint32_t from = 0; from < to; ++from)
      for (const BufferUse &a : dag.nodes[from].uses)
        for (const BufferUse &b : dag.nodes[to].uses)
          if (a.buffer == b.buffer && a.writes && b.reads &&
              !dag.buffer(a.buffer).device.isHost())
            dag.edges.push_back({{from}, {to}, DepKind::Data});
  dag.normalize();
  const planner::Machine latency = planner::hostMachine();
  program.plan = *schedule(dag, latency);
  return program;
}

/// Holds up whoever comes, until it is opened.
class Gate {
public:
  void pass() {
    std::unique_lock<std::mutex> lock(mutex);
    opened.wait(lock, [&] { return isOpen; });
  }
  void set(bool open) {
    std::lock_guard<std::mutex> lock(mutex);
    isOpen = open;
    opened.notify_all();
  }

private:
  std::mutex mutex;
  std::condition_variable opened;
  bool isOpen = true;
};
Gate launchesOfGpu1;
CUresult (*plainLaunch)(CUgraphExec, CUstream);
/// Outside of the double's lock, as a call of CUDA's that does not return.
thread_local bool isGpu1 = false;
CUresult gatedLaunch(CUgraphExec exec, CUstream stream) {
  if (isGpu1)
    launchesOfGpu1.pass();
  return plainLaunch(exec, stream);
}

class ThreadsOfRanks : public testing::Test {
protected:
  void SetUp() override {
    setenv("NCCL_GRAPH_MIXING_SUPPORT", "0", 1);
    fresh(4);
    plainLaunch = FakeCuda::api()->cuGraphLaunch;
  }
  static FakeCuda &fresh(int gpus) {
    FakeCuda &machine = freshMachine(uint64_t(gpus));
    machine.gpus = gpus;
    FakeNccl::reset();
    FakeWorld::create();
    return machine;
  }
  static Ranks::Options
  quick(milliseconds deadline = std::chrono::seconds(20)) {
    Ranks::Options options;
    options.policy = capture::RankPolicy::Threads;
    options.deadline = deadline;
    options.grace = milliseconds(500);
    options.names = {"cuda:0", "cuda:1", "cuda:2", "cuda:3"};
    return options;
  }
  Result<std::unique_ptr<Ranks>> start(uint32_t devices,
                                       Ranks::Options options = quick()) {
    SumProgram program = makeSumProgram(devices);
    auto token = std::make_shared<int>();
    crew = token;
    return Ranks::start(
        program.dag, program.plan, {},
        [token, deadline = options.deadline](
            uint32_t rank, std::function<Result<void>()> watch)
            -> Result<std::unique_ptr<device::Driver>> {
          isGpu1 = rank == 1;
          device::CudaOptions how = rankOptions(rank, int(rank));
          how.watch = std::move(watch);
          how.deadline = deadline;
          auto api = std::make_shared<device::CudaApi>(*FakeCuda::api());
          MGPU_TRY(device::initializeCuda(*api));
          api->cuGraphLaunch = gatedLaunch;
          return device::createCudaDriver(std::move(api), how, FakeNccl::api());
        },
        options);
  }
  /// Runs it and compares with what it means.
  static Result<void> tryOnce(Ranks &gpus, uint32_t devices, int round) {
    auto floats = [&](uint32_t buffer) {
      return reinterpret_cast<float *>(gpus.hostBuffer({buffer}).data());
    };
    float *x = floats(SumProgram::X);
    for (int64_t k = 0; k < elements * devices; ++k)
      x[k] = float(k % 17 - 8 + round);
    MGPU_TRY(gpus.replay());
    const auto *seen = reinterpret_cast<const int64_t *>(
        gpus.hostBuffer({SumProgram::Seen}).data());
    for (uint32_t k = 0; k < devices; ++k) {
      EXPECT_EQ(seen[k], firstTrip + int64_t(trips - 1) * tripStep);
      for (int64_t e = 0; e < elements; ++e) {
        float sum = 0;
        for (uint32_t j = 0; j < devices; ++j)
          sum += x[j * elements + e];
        for (uint64_t trip = 1; trip < trips; ++trip)
          sum *= float(devices);
        EXPECT_EQ(floats(SumProgram::Y)[k * elements + e], sum);
      }
    }
    return {};
  }
  static void expectIn(const std::string &text,
                       std::initializer_list<const char *> words) {
    for (const char *each : words)
      EXPECT_NE(text.find(each), std::string::npos) << text;
  }
  bool isCrewGone(milliseconds within) const {
    for (auto left = within; left.count() > 0; left -= milliseconds(10)) {
      if (crew.expired())
        return true;
      std::this_thread::sleep_for(milliseconds(10));
    }
    return crew.expired();
  }
  static size_t count(const char *call) {
    const auto &called = FakeCuda::instance().called;
    return size_t(std::count(called.begin(), called.end(), call));
  }

  std::weak_ptr<int> crew; ///< gone once no thread holds anything
};

TEST_F(ThreadsOfRanks, GiveWhatTheProgramMeans) {
  for (uint32_t devices : {1u, 2u, 4u}) {
    SCOPED_TRACE(devices);
    fresh(4);
    {
      auto gpus = start(devices);
      ASSERT_TRUE(gpus) << gpus.error().message;
      auto loaded = (*gpus)->load();
      ASSERT_TRUE(loaded) << loaded.error().message;
      for (int round = 0; round < 5; ++round) {
        auto ran = tryOnce(**gpus, devices, round);
        ASSERT_TRUE(ran) << ran.error().message;
      }
      ASSERT_TRUE((*gpus)->fetch());
    }
    EXPECT_TRUE(crew.expired());
    EXPECT_EQ(rankComplaints(), "");
    // One block of host memory, one time.
    EXPECT_EQ(count("cuMemHostRegister"), 1u);
    EXPECT_EQ(count("cuMemHostUnregister"), 1u);
    EXPECT_EQ(count("ncclCommAbort"), 0u);
  }
}

/// Host memory of the caller's, pinned; `of`: for that GPU's context alone.
template <typename T>
struct Pinned {
  explicit Pinned(size_t count, const fake::Context *of = nullptr)
      : values(count) {
    std::lock_guard<std::recursive_mutex> lock(fakeMutex());
    FakeCuda::instance().registered[uintptr_t(values.data())] = {
        count * sizeof(T), of};
  }
  ~Pinned() {
    std::lock_guard<std::recursive_mutex> lock(fakeMutex());
    FakeCuda::instance().registered.erase(uintptr_t(values.data()));
  }
  std::span<std::byte> bytes() {
    return std::as_writable_bytes(std::span(values));
  }
  std::vector<T> values;
};

TEST_F(ThreadsOfRanks, TakeMemoryOfTheCallers) {
  for (uint32_t devices : {1u, 2u, 4u}) {
    SCOPED_TRACE(devices);
    fresh(4);
    const SumProgram program = makeSumProgram(devices);
    {
      Pinned<float> x(elements * devices), y(elements * devices),
          otherX(elements * devices);
      Pinned<int64_t> note(1), otherNote(1), noted(1);
      auto gpus = start(devices);
      ASSERT_TRUE(gpus) << gpus.error().message;
      ASSERT_TRUE((*gpus)->load());
      auto bind = [&](uint32_t buffer, std::span<std::byte> memory) {
        auto ok = (*gpus)->bind({buffer}, memory);
        ASSERT_TRUE(ok) << ok.error().message;
        EXPECT_EQ((*gpus)->hostBuffer({buffer}).data(), memory.data());
      };
      auto own = (*gpus)->hostBuffer({SumProgram::X});
      bind(SumProgram::X, x.bytes());
      bind(SumProgram::Y, y.bytes());
      bind(program.note, note.bytes()); // only GPU 0 has it, beside the sum
      bind(program.noted, noted.bytes());
      std::fill(own.begin(), own.end(), std::byte(0x55)); // read by nobody
      for (int round = 0; round < 3; ++round) {
        note.values[0] = 100 + round;
        auto ran = tryOnce(**gpus, devices, round);
        ASSERT_TRUE(ran) << ran.error().message;
        EXPECT_EQ(noted.values[0], 100 + round);
        // tryOnce() has compared y.values, which is hostBuffer(Y).
        EXPECT_NE(y.values[0], 0);
      }
      bind(SumProgram::X, otherX.bytes());
      x.values.assign(x.values.size(), 1e9f);
      auto ran = tryOnce(**gpus, devices, 7);
      ASSERT_TRUE(ran) << ran.error().message;
      // Many times over, and no more memory is taken for it.
      bind(SumProgram::X, x.bytes());
      bind(program.note, note.bytes());
      const size_t taken = count("cuMemHostAlloc") + count("cuMemAlloc");
      for (int round = 0; round < 5; ++round) {
        bind(SumProgram::X, (round % 2 ? x : otherX).bytes());
        bind(program.note, (round % 2 ? note : otherNote).bytes());
      }
      EXPECT_EQ(count("cuMemHostAlloc") + count("cuMemAlloc"), taken);
      EXPECT_EQ(count("cuGraphExecNodeSetParams"), 0u); // made by all, or none
    }
    EXPECT_TRUE(crew.expired());
    EXPECT_EQ(rankComplaints(), "");
  }
}

TEST_F(ThreadsOfRanks, MemoryThatAGpuDoesNotReachIsNamed) {
  const SumProgram program = makeSumProgram(2);
  std::vector<float> pageable(elements * 2);
  for (bool isPinned : {false, true}) {
    SCOPED_TRACE(isPinned);
    fresh(4);
    auto gpus = start(2);
    ASSERT_TRUE(gpus) << gpus.error().message;
    ASSERT_TRUE((*gpus)->load());
    // What is wrong on every GPU alike costs none.
    auto small = (*gpus)->bind(
        {SumProgram::X}, std::as_writable_bytes(std::span(pageable)).first(8));
    ASSERT_FALSE(small);
    EXPECT_EQ(small.error().kind, ErrorKind::Usage);
    auto ran = tryOnce(**gpus, 2, 0);
    ASSERT_TRUE(ran) << ran.error().message;
    // Pinned, but not with CU_MEMHOSTREGISTER_PORTABLE: for GPU 0.
    const fake::Context *first = FakeCuda::instance().primary.at(0).first;
    std::optional<Pinned<float>> ofGpu0;
    if (isPinned)
      ofGpu0.emplace(size_t(elements) * 2, first);
    auto bound =
        (*gpus)->bind({SumProgram::X},
                      isPinned ? ofGpu0->bytes()
                               : std::as_writable_bytes(std::span(pageable)));
    ASSERT_FALSE(bound);
    expectIn(bound.error().message,
             {"binding memory of the caller's on several GPUs failed",
              "rank 1 (cuda:1) cuGraphAddNode for 'up' on cuda:1",
              "must be pinned for this GPU"});
    EXPECT_EQ(bound.error().kind, ErrorKind::Invalid);
    EXPECT_EQ(bound.error().message.find("on cuda:0: CUDA_ERROR") ==
                  std::string::npos,
              isPinned)
        << bound.error().message;
    expectIn((*gpus)->replay().error().message, {"the GPUs were lost before"});
    gpus->reset();
    EXPECT_TRUE(crew.expired());
    EXPECT_EQ(FakeCuda::instance().violations, std::vector<std::string>());
  }
}

/// When GPU 1 launches the second graph of a replay, that of the sum.
void atTheSumOfGpu1(std::function<void(FakeCuda &)> what) {
  std::lock_guard<std::recursive_mutex> lock(fakeMutex());
  FakeCuda::instance().onLaunch = [what, launches = 0](uint64_t) mutable {
    FakeCuda &fake = FakeCuda::instance();
    if (fake.current()->gpu == 1 && ++launches == 2)
      what(fake);
  };
  FakeCuda::instance().wrongGpu = 1;
}

TEST_F(ThreadsOfRanks, AFaultOfOneIsTheErrorOfAll) {
  auto gpus = start(2);
  ASSERT_TRUE(gpus) << gpus.error().message;
  ASSERT_TRUE((*gpus)->load());
  ASSERT_TRUE(tryOnce(**gpus, 2, 0));
  atTheSumOfGpu1(
      [](FakeCuda &fake) { fake.launchFault = CUDA_ERROR_ILLEGAL_ADDRESS; });
  auto ran = (*gpus)->replay();
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().kind, ErrorKind::Invalid);
  expectIn(ran.error().message,
           {"the replay on several GPUs failed; rank 1 (cuda:1)",
            "CUDA_ERROR_ILLEGAL_ADDRESS",
            "'the sum (sum.mlir:1:1)' among devices 0, 1 has not ended",
            "rank 0 (cuda:0)", "given up, because another GPU failed"});
  auto again = (*gpus)->replay();
  ASSERT_FALSE(again);
  expectIn(again.error().message, {"the GPUs were lost before", "rank 1"});
  EXPECT_FALSE((*gpus)->load());
  gpus->reset();
  EXPECT_TRUE(crew.expired());
  EXPECT_EQ(FakeCuda::instance().violations, std::vector<std::string>());
}

TEST_F(ThreadsOfRanks, OneThatIsLateIsNamed) {
  auto gpus = start(2, quick(milliseconds(700)));
  ASSERT_TRUE(gpus) << gpus.error().message;
  ASSERT_TRUE((*gpus)->load());
  atTheSumOfGpu1([](FakeCuda &fake) { fake.neverEnds = true; });
  auto ran = (*gpus)->replay();
  ASSERT_FALSE(ran);
  expectIn(ran.error().message,
           {"rank 1 (cuda:1) a replay on cuda:1 did not end within 700 ms",
            "rank 0 (cuda:0)"});
  gpus->reset();
  EXPECT_TRUE(crew.expired());
}

TEST_F(ThreadsOfRanks, WhatNcclFindsWrongEndsTheWait) {
  auto gpus = start(2);
  ASSERT_TRUE(gpus) << gpus.error().message;
  ASSERT_TRUE((*gpus)->load());
  atTheSumOfGpu1([](FakeCuda &fake) {
    fake.neverEnds = true;
    FakeNccl::instance().asyncError = device::NcclResult::RemoteError;
  });
  auto started = std::chrono::steady_clock::now();
  auto ran = (*gpus)->replay();
  EXPECT_LT(std::chrono::steady_clock::now() - started,
            std::chrono::seconds(5));
  ASSERT_FALSE(ran);
  expectIn(ran.error().message,
           {"a replay on cuda:1: ", "ncclCommGetAsyncError", "rank 0 (cuda:0)",
            "rank 1 (cuda:1)"});
  gpus->reset();
  EXPECT_TRUE(crew.expired());
}

TEST_F(ThreadsOfRanks, OneThatIsStuckInACallIsLeft) {
  auto gpus = start(2, quick(milliseconds(700)));
  ASSERT_TRUE(gpus) << gpus.error().message;
  ASSERT_TRUE((*gpus)->load());
  auto before = tryOnce(**gpus, 2, 0);
  ASSERT_TRUE(before) << before.error().message;
  launchesOfGpu1.set(false);
  auto started = std::chrono::steady_clock::now();
  auto ran = (*gpus)->replay();
  EXPECT_LT(std::chrono::steady_clock::now() - started,
            std::chrono::seconds(5));
  ASSERT_FALSE(ran);
  expectIn(ran.error().message,
           {"rank 1 (cuda:1) gave no answer and is left to itself: a call of "
            "CUDA or NCCL does not return",
            "rank 0 (cuda:0) waited 1200 ms for rank 1"});
  expectIn((*gpus)->replay().error().message, {"the GPUs were lost before"});
  gpus->reset();
  EXPECT_LT(std::chrono::steady_clock::now() - started,
            std::chrono::seconds(8));
  // It comes back to what is still there.
  EXPECT_FALSE(crew.expired());
  launchesOfGpu1.set(true);
  EXPECT_TRUE(isCrewGone(std::chrono::seconds(10)));
}

/// Whichever call fails: one error that names it, or none at the end; and where
/// no GPU was left in the middle of something, nothing of CUDA's is left.
TEST_F(ThreadsOfRanks, AnyCallMayFail) {
  {
    auto gpus = start(2);
    ASSERT_TRUE(gpus && (*gpus)->load() && tryOnce(**gpus, 2, 0));
  }
  const uint64_t calls = FakeCuda::instance().calls;
  size_t failures = 0, clean = 0;
  for (uint64_t n = 1; n < calls; n += 1 + n / 16) {
    FakeCuda &fake = fresh(2);
    fake.failAt = n;
    fake.failCode = CUDA_ERROR_NOT_PERMITTED;
    std::string said;
    {
      auto gpus = start(2, quick(std::chrono::seconds(5)));
      Result<void> ran =
          gpus ? (*gpus)->load() : Result<void>(fail(gpus.error()));
      if (ran)
        ran = tryOnce(**gpus, 2, 0);
      if (!ran)
        said = ran.error().message;
    }
    const std::string at =
        "call " + std::to_string(n) + " (" + fake.failedCall + "): " + said;
    ASSERT_TRUE(crew.expired()) << at;
    ASSERT_TRUE(fake.violations.empty()) << at << fake.violations.front();
    if (said.empty())
      continue; // while it was ended, or it made nothing worse
    ++failures;
    ASSERT_NE(said.find(fake.failedCall), std::string::npos) << at;
    ASSERT_NE(said.find("on several GPUs failed; rank "), std::string::npos)
        << at;
    if (said.starts_with("opening")) {
      ++clean;
      ASSERT_EQ(fake.leaks(), std::vector<std::string>()) << at;
    }
  }
  EXPECT_GT(failures, 20u);
  EXPECT_GT(clean, 5u);
}

TEST_F(ThreadsOfRanks, TwoRanksOnOneGpuAreRefused) {
  SumProgram program = makeSumProgram(2);
  auto gpus = Ranks::start(
      program.dag, program.plan, {},
      [](uint32_t rank, std::function<Result<void>()> watch) {
        device::CudaOptions options = rankOptions(rank, 0);
        options.watch = std::move(watch);
        return openThread(options);
      },
      quick());
  ASSERT_FALSE(gpus);
  expectIn(gpus.error().message,
           {"building on several GPUs failed", "ncclCommInitRankConfig"});
}

} // namespace
