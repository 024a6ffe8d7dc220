// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs made so that transforms find something: partial sums on several
// devices, reduced by many small all_reduces, read whole or by parts, some
// through copies; and chains of kernels with collectives between them. Every
// transform must leave the reference machine's values, and the bits of the
// untransformed program.
#include "tests/conformance/RandomProgram.h"

#include "planner/schedule/MakePlan.h"
#include "support/Random.h"
#include "tests/conformance/Import.h"
#include "tests/unit/Sweep.h"
#include "tuner/space/TransformSpace.h"

#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::conformance;

namespace {

class Reductions {
public:
  explicit Reductions(uint64_t seed) : random(seed) {}

  RandomProgram make() {
    program.numDevices = 2 + int(random.below(3));
    program.communicators.push_back({});
    for (int d = 0; d < program.numDevices; ++d)
      program.communicators[0].push_back(d);
    int count = 2 + int(random.below(5));
    bool late = random.below(2) == 0; // all sums first, then all reductions
    for (int k = 0; k < count; ++k)
      makeSum();
    if (late)
      for (Sum &sum : sums)
        fill(sum);
    for (Sum &sum : sums) {
      if (!late)
        fill(sum);
      reduce(sum);
      if (random.below(4) == 0)
        use(sum);
    }
    for (Sum &sum : sums)
      if (!sum.isUsed)
        use(sum);
    finish();
    return std::move(program);
  }

private:
  struct Sum {
    std::vector<int> parts, results; ///< by device; equal when in place
    int64_t size = 0;
    bool isUsed = false;
  };

  int root(int device, int64_t size, bool isArgument) {
    Root made;
    made.device = device;
    made.shape = {size};
    made.isArgument = isArgument;
    if (isArgument)
      made.role = "output";
    program.roots.push_back(made);
    return int(program.roots.size()) - 1;
  }
  int allocated(int device, int64_t size) {
    int id = root(device, size, false);
    Op op{Op::Alloc};
    op.roots = {id};
    program.ops.push_back(op);
    return id;
  }
  View view(int id, int64_t offset = 0, int64_t size = -1) {
    View made;
    made.root = id;
    made.offsets = {offset};
    made.isWholeRoot = size < 0;
    made.sizes = {size < 0 ? program.roots[id].shape[0] : size};
    made.steps = {1};
    return made;
  }
  void makeSum() {
    Sum sum;
    // Whole numbers of 256 bytes and others, to be padded.
    sum.size = program.numDevices * 2 * int64_t(1 + random.below(40));
    bool inPlace = random.below(2) == 0;
    for (int d = 0; d < program.numDevices; ++d) {
      sum.parts.push_back(allocated(d, sum.size));
      sum.results.push_back(inPlace ? sum.parts.back()
                                    : allocated(d, sum.size));
    }
    sums.push_back(std::move(sum));
  }
  void overwrite(int id) {
    Op op{Op::Launch};
    op.kernel = KernelTemplate::Fill;
    op.to = {view(id)};
    op.scalar = int64_t(random.below(4));
    program.ops.push_back(op);
  }
  void fill(const Sum &sum) {
    for (int d = 0; d < program.numDevices; ++d)
      overwrite(sum.parts[d]);
  }
  void reduce(const Sum &sum) {
    Op op{Op::Collective};
    for (int d = 0; d < program.numDevices; ++d) {
      op.to.push_back(view(sum.results[d]));
      op.from.push_back(view(sum.parts[d]));
      op.callOrder.push_back(d);
    }
    program.ops.push_back(op);
  }
  void copy(View to, View from) {
    Op op{Op::Copy};
    op.to = {std::move(to)};
    op.from = {std::move(from)};
    program.ops.push_back(op);
  }
  void use(Sum &sum) {
    sum.isUsed = true;
    int out = root(-1, sum.size, true);
    int64_t share = sum.size / program.numDevices;
    switch (random.below(3)) {
    case 0: // each device hands out its part
      for (int d = 0; d < program.numDevices; ++d)
        copy(view(out, d * share, share),
             view(sum.results[d], d * share, share));
      return;
    case 1: // one hands out all, through a copy and a kernel
    {
      int d = int(random.below(uint64_t(program.numDevices)));
      int held = allocated(d, sum.size), made = allocated(d, sum.size);
      copy(view(held), view(sum.results[d]));
      uint64_t how = random.below(4);
      if (how == 1) // a new value must not reach the copy
        overwrite(sum.results[d]);
      if (how == 2) // or must
        overwrite(sum.results[d]), copy(view(held), view(sum.results[d]));
      if (how == 3)
        copy(view(held), view(sum.results[d]));
      Op op{Op::Launch};
      op.kernel = KernelTemplate::Reverse;
      op.to = {view(made)};
      op.from = {view(held)};
      program.ops.push_back(op);
      copy(view(out), view(made));
      return;
    }
    default: // one hands out another's part as well
      copy(view(out, 0, 2 * share), view(sum.results[0], 0, 2 * share));
      return;
    }
  }
  void finish() {
    for (const Root &made : program.roots)
      program.initial.emplace_back(size_t(made.shape[0]), 0.0);
    conformance::Machine machine(program);
    machine.memory = program.initial;
    for (const Op &op : program.ops)
      EXPECT_TRUE(machine.run(op));
    program.final = machine.memory;
  }

  Random random;
  RandomProgram program;
  std::vector<Sum> sums;
};

/// On each device a chain of kernels by rows, with collectives in it.
class Chains {
public:
  explicit Chains(uint64_t seed) : random(seed) {}

  RandomProgram make() {
    program.numDevices = 2 + int(random.below(2));
    program.communicators.push_back({});
    for (int d = 0; d < program.numDevices; ++d)
      program.communicators[0].push_back(d);
    rows = int64_t(8 * (1 + random.below(3)));
    columns = int64_t(2 + random.below(5));
    for (int d = 0; d < program.numDevices; ++d)
      at.push_back(kernel(KernelTemplate::Fill, allocated(d, rows), {}));
    for (uint64_t length = 2 + random.below(5); length > 0; --length)
      if (random.below(3) == 0)
        collective();
      else
        kernels();
    collective();
    kernels();
    for (int d = 0; d < program.numDevices; ++d) {
      Op op{Op::Copy};
      op.from = {at[d]};
      op.to = {view(root(-1, at[d].sizes[0], true), 0, at[d].sizes[0])};
      program.ops.push_back(op);
    }
    for (const Root &made : program.roots)
      program.initial.emplace_back(size_t(made.shape[0] * made.shape[1]), 0.0);
    conformance::Machine machine(program);
    machine.memory = program.initial;
    for (const Op &op : program.ops)
      EXPECT_TRUE(machine.run(op));
    program.final = machine.memory;
    return std::move(program);
  }

private:
  int root(int device, int64_t height, bool isArgument) {
    Root made;
    made.device = device;
    made.shape = {height, columns};
    made.isArgument = isArgument;
    if (isArgument)
      made.role = "output";
    program.roots.push_back(made);
    return int(program.roots.size()) - 1;
  }
  View view(int id, int64_t first, int64_t height) {
    View made;
    made.root = id;
    made.offsets = {first, 0};
    made.sizes = {height, columns};
    made.steps = {1, 1};
    made.isWholeRoot = height == program.roots[id].shape[0];
    return made;
  }
  View allocated(int device, int64_t height) {
    int id = root(device, height, false);
    Op op{Op::Alloc};
    op.roots = {id};
    program.ops.push_back(op);
    return view(id, 0, height);
  }
  View kernel(KernelTemplate what, View to, std::vector<View> from) {
    Op op{Op::Launch};
    op.kernel = what;
    op.to = {to};
    op.from = std::move(from);
    op.scalar = int64_t(random.below(3));
    program.ops.push_back(op);
    return to;
  }
  void kernels() {
    KernelTemplate what =
        std::vector{KernelTemplate::Reverse, KernelTemplate::RowSum,
                    KernelTemplate::Axpy}[random.below(3)];
    for (int d = 0; d < program.numDevices; ++d) {
      View to = allocated(d, at[d].sizes[0]);
      std::vector<View> from{at[d]};
      if (what == KernelTemplate::Axpy)
        from.push_back(at[d]);
      at[d] = kernel(what, to, std::move(from));
    }
  }
  void collective() {
    Op op{Op::Collective};
    op.collective = std::vector{
        CollectiveKind::AllReduce, CollectiveKind::AllReduce,
        CollectiveKind::AllGather, CollectiveKind::Broadcast}[random.below(4)];
    op.reduction = random.below(2) ? ReductionKind::Max : ReductionKind::Min;
    op.root = int(random.below(uint64_t(program.numDevices)));
    op.axis = op.root % 2;
    int64_t most = op.axis ? 16 : 96;
    bool gathers = op.collective == CollectiveKind::AllGather &&
                   at[0].sizes[size_t(op.axis)] * program.numDevices <= most;
    if (!gathers && op.collective == CollectiveKind::AllGather)
      op.collective = CollectiveKind::AllReduce;
    // All around, or with zeros for rank 1.
    if (op.collective == CollectiveKind::Broadcast && op.root % 2) {
      op.collective = CollectiveKind::Permute;
      for (int d = int(program.ops.size() % 2); d < program.numDevices; ++d)
        op.pairs.emplace_back(d, (d + 1) % program.numDevices);
    }
    bool inPlace = !gathers && (op.collective == CollectiveKind::Broadcast ||
                                (op.collective == CollectiveKind::Permute
                                     ? op.pairs.size() % 2 == 0
                                     : random.below(2) == 0));
    int64_t height = at[0].sizes[0];
    if (gathers)
      (op.axis == 0 ? height : columns) *= program.numDevices;
    for (int d = 0; d < program.numDevices; ++d) {
      op.from.push_back(at[d]);
      if (!inPlace)
        at[d] = allocated(d, height);
      op.to.push_back(at[d]);
      op.callOrder.push_back(d);
    }
    program.ops.push_back(op);
  }

  Random random;
  RandomProgram program;
  std::vector<View> at; ///< what each device has, by device
  int64_t rows = 0, columns = 0;
};

/// With a schedule policy for each bit, on a machine on which copies
/// and collectives are better not run side by side. Counts what they did.
Result<planner::Plan> planFreely(const planner::Dag &dag, unsigned bits,
                                 std::map<std::string, uint32_t> &changes) {
  using namespace planner;
  MGPU_TRY_ASSIGN(device::Topology topology,
                  device::openTopology("sim:pcie-l40s-4"));
  PlanRequest options;
  options.schedulePolicy = {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
  for (TransformKind kind : allTransforms)
    if (auto policyFlag = policyFlagOf(kind);
        policyFlag && options.schedulePolicy.*policyFlag)
      options.transforms.emplace_back(kind);
  exact::Budget budget(1e6, 10);
  MGPU_TRY_ASSIGN(TargetPlan made,
                  makePlan(dag, planner::Machine(topology), options, &budget));
  for (const TransformGain &gain : made.gains)
    changes[toString(gain.transform)] += gain.changes;
  MGPU_TRY(verify(made.plan, dag));
  return std::move(made.plan);
}

std::map<std::string, uint32_t> changesIn(RandomProgram (*make)(uint64_t),
                                          uint64_t count) {
  Importer importer;
  KernelCache cache;
  std::map<std::string, uint32_t> changes;
  auto check = [&](uint64_t seed) {
    RandomProgram program = make(seed);
    ImportRequest request;
    request.text = printProgram(program);
    request.name = "seed" + std::to_string(seed);
    SCOPED_TRACE(request.text);
    ImportOutcome outcome = importer.import(request);
    ASSERT_TRUE(outcome.dag)
        << (outcome.errors.empty() ? outcome.dag.error().message
                                   : outcome.errors[0]);
    auto objects = cache.compile(*outcome.dag);
    ASSERT_TRUE(objects) << objects.error().message;
    auto serial = makePlan(*outcome.dag, "serial");
    ASSERT_TRUE(serial) << serial.error().message;
    auto expected = execute(*outcome.dag, *serial, *objects, {}, 1);
    ASSERT_TRUE(expected) << expected.error().message;
    for (size_t id = 0; id < program.roots.size(); ++id)
      if (program.roots[id].isArgument) {
        const auto &bytes = expected->at(argumentName(int(id)));
        for (size_t k = 0; k < program.final[id].size(); ++k)
          ASSERT_EQ(reinterpret_cast<const float *>(bytes.data())[k],
                    program.final[id][k]);
      }
    auto all = transformed(*outcome.dag);
    ASSERT_TRUE(all) << all.error().message;
    auto sets = tuner::transformLists(*outcome.dag); // that `tune` tries
    ASSERT_TRUE(sets) << sets.error().message;
    // Some: with a number of chunks for each group there are many.
    const size_t step = std::max<size_t>(sets->size() / 8, 1);
    for (size_t k = 1 + seed % step; k < sets->size(); k += step) {
      auto dag = tuner::transformed(*outcome.dag, (*sets)[k]);
      ASSERT_TRUE(dag) << dag.error().message;
      all->push_back({"several of them", std::move(*dag), 1});
    }
    for (const Transformed &each : *all) {
      changes[each.name] += each.changes;
      for (std::string scheduler : {"serial", "list", "1", "2", "3"}) {
        auto plan = makePlan(each.dag, scheduler);
        ASSERT_TRUE(plan) << each.name << ": " << plan.error().message;
        auto got = execute(each.dag, *plan, *objects, {}, 2, 2);
        ASSERT_TRUE(got) << each.name << ": " << got.error().message;
        ASSERT_EQ(difference(*expected, *got), "")
            << each.name << ", scheduler " << scheduler;
      }
    }
    for (unsigned bits = 0; bits < 8; ++bits) {
      auto plan = planFreely(*outcome.dag, bits, changes);
      ASSERT_TRUE(plan) << bits << ": " << plan.error().message;
      auto got = execute(*outcome.dag, *plan, *objects, {}, 2, 2);
      ASSERT_TRUE(got) << bits << ": " << got.error().message;
      ASSERT_EQ(difference(*expected, *got), "")
          << "schedule policies " << bits;
    }
  };
  for (uint64_t seed = 0; seed < count; ++seed) {
    check(seed);
    if (testing::Test::HasFatalFailure())
      break;
  }
  for (const auto &[name, number] : changes)
    printf("transform %s: %u changes\n", name.c_str(), number);
  return changes;
}

TEST(TransformPrograms, KeepValuesAndBits) {
  auto changes = changesIn(
      [](uint64_t seed) { return Reductions(seed).make(); }, sweep(15, 30));
  for (const char *name : {"copies", "scatter", "bucket", "chunk2", "split",
                           "order", "early", "nofork"})
    EXPECT_GT(changes[name], 8u) << name;
}

TEST(TransformPrograms, ChainsInChunksKeepValuesAndBits) {
  auto changes =
      changesIn([](uint64_t seed) { return Chains(seed).make(); }, 30);
  for (const char *name :
       {"chunk2", "chunk4", "chunk8", "chunks of several numbers"})
    EXPECT_GT(changes[name], 10u) << name;
}

} // namespace
