// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replays that are wrong in the ways that users of graphs report, and what an
// audit says of each. The runner is given a program that was tampered with; the
// audit has the right one.
// Usage: serve_audit BUNDLE CLEAN_AUDITS
#include "capture/replay/Bundle.h"
#include "device/host/CpuLevel.h"
#include "device/host/HostDriver.h"
#include "pipeline/serve/Audit.h"
#include "planner/plan/Verify.h"
#include "support/Clock.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>

namespace mgpu {
namespace {

using namespace planner;

[[noreturn]] void die(const std::string &what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}
template <typename T>
T must(Result<T> result) {
  if (!result)
    die(result.error().message);
  if constexpr (!std::is_void_v<T>)
    return std::move(*result);
}

struct Served {
  Program program;
  Plan plan;
  std::vector<std::vector<std::byte>> kernels;
};

/// The program as it should be, and as the runner has it.
struct Case {
  explicit Case(const Served &right) : right(right), wrong(right) {}
  void open(uint32_t threads = 4) {
    if (!tryOpen(threads))
      die("a planted fault cannot be built");
  }
  bool tryOpen(uint32_t threads = 4) {
    auto driver =
        must(device::createHostDriver(right.program.dag.numDevices, threads));
    auto replayer = capture::Replayer::create(wrong.program.dag, wrong.plan,
                                              wrong.kernels, *driver);
    if (!replayer)
      return false;
    runner = capture::runOnOneTarget(std::move(driver), std::move(*replayer),
                                     wrong.program.dag, wrong.plan);
    audit = must(pipeline::serve::Audit::onHost(right.program.dag, right.plan,
                                                right.kernels, *runner));
    for (const ProgramArgument &argument : right.program.arguments) {
      auto bytes = must(runner->memory(*argument.buffer));
      for (size_t k = 0; k < bytes.size() / 4; ++k) {
        const float value =
            float(k * 7 % 16) - 5 + 0.37f * float(argument.buffer->value);
        std::memcpy(bytes.data() + 4 * k, &value, 4);
      }
    }
    must(runner->load());
    must(audit->load());
    return true;
  }
  std::string find() {
    double us = 0;
    const auto found = must(audit->replay(us));
    return found ? found->what : "";
  }
  const Served &right;
  Served wrong;
  std::unique_ptr<capture::Runner> runner;
  std::unique_ptr<pipeline::serve::Audit> audit;
};

void mustName(const std::string &found, const DagNode &node, const char *what) {
  if (found.find("node '" + node.name + "'") == std::string::npos)
    die(std::string(what) + " in '" + node.name + "' gives: " + found);
}

/// A node, kernel or copy, that reads other memory of its buffer, or does
/// nothing: found in one audit, by its name.
size_t sweep(const Served &right) {
  size_t numFound = 0;
  for (uint32_t k = 0; k < right.program.dag.nodes.size(); ++k) {
    for (const bool isDropped : {false, true}) {
      Case each(right);
      DagNode node = right.program.dag.nodes[k];
      auto *copy = std::get_if<CopyCall>(&node.work);
      auto *call = std::get_if<KernelCall>(&node.work);
      if (node.phase != Phase::Replay || (!copy && !call))
        continue;
      if (isDropped && copy)
        copy->sourceBox = copy->destinationBox = Box::flat(0, 0);
      else if (isDropped)
        call->part = GridPart{{0, 0, 0}, {0, 0, 0}};
      else if (copy && copy->sourceBox.numElements() > 1)
        std::ranges::fill(copy->sourceBox.strides, 0); // its first element's
      else
        continue;
      each.wrong.program.dag.nodes[k] = node;
      each.open();
      mustName(each.find(), right.program.dag.nodes[k],
               isDropped ? "a dropped piece" : "a changed address");
      ++numFound;
    }
  }
  return numFound;
}

/// Whether `to` follows `from` by the streams and waits of the plan, and as a
/// device's nodes are in one queue of the host.
bool isOrdered(const Served &of, NodeId from, NodeId to) {
  std::vector<bool> isBehind(of.program.dag.nodes.size());
  std::map<int32_t, NodeId> last; // of a queue
  std::map<PlanStream, NodeId> lastOf;
  isBehind[from.value] = true;
  for (const PlanStep &step : of.plan.steps) {
    const DagNode &node = of.program.dag.node(step.node);
    const int32_t queue = std::max(streamDevices(node)[0].value, 0);
    for (NodeId wait : step.waits)
      if (isBehind[wait.value])
        isBehind[step.node.value] = true;
    auto follow = [&](auto &lasts, auto key) {
      if (auto at = lasts.find(key);
          at != lasts.end() && isBehind[at->second.value])
        isBehind[step.node.value] = true;
      lasts[key] = step.node;
    };
    follow(last, queue);
    for (const PlanStream &stream : step.streams)
      follow(lastOf, stream);
  }
  return isBehind[to.value];
}

/// A node that does not wait for what it reads: found within 20 audits, as
/// nodes are held up.
[[maybe_unused]] void missingEdges(const Served &right) {
  size_t numTried = 0, numFound = 0;
  for (uint32_t k = 0; k < right.program.dag.nodes.size(); ++k) {
    Case each(right);
    Dag &dag = each.wrong.program.dag;
    std::vector<NodeId> gone;
    std::erase_if(dag.edges, [&](const DepEdge &edge) {
      const bool isGone = edge.to.value == k && edge.kind == DepKind::Data;
      if (isGone)
        gone.push_back(edge.from);
      return isGone;
    });
    for (PlanStep &step : each.wrong.plan.steps)
      if (step.node.value == k)
        step.waits.clear();
    if (right.program.dag.nodes[k].phase != Phase::Replay ||
        std::ranges::all_of(
            gone,
            [&](NodeId from) { return isOrdered(each.wrong, from, {k}); }) ||
        !each.tryOpen())
      continue;
    ++numTried;
    for (int audits = 0; audits < 20; ++audits)
      if (!each.find().empty()) {
        ++numFound;
        break;
      }
  }
  std::printf("%zu of %zu missing edges found within 20 audits\n", numFound,
              numTried);
  // How soon a thread comes is the system's: on an idle machine all are.
  if (numTried == 0 || 2 * numFound < numTried)
    die("missing edges are not found");
}

/// CPU time of this process, as others run beside it.
double cpuUs() { return 1e6 * double(std::clock()) / CLOCKS_PER_SEC; }

void clean(const Served &right, size_t count, uint32_t threads) {
  Case each(right);
  each.open(threads);
  double us = 0;
  const double start = cpuUs();
  for (size_t k = 0; k < count; ++k)
    if (const auto found = must(each.audit->replay(us)))
      die("a false alarm in audit " + std::to_string(k) + ": " + found->what);
  const double audited = cpuUs();
  for (size_t k = 0; k < count; ++k)
    must(each.runner->replay({&us, 1}));
  const double replayed = cpuUs();
  for (size_t k = 0; k < count; ++k)
    must(each.audit->replayReference(us));
  const double n = double(count), plainUs = (replayed - audited) / n,
               serialUs = (cpuUs() - replayed) / n,
               auditUs = (audited - start) / n;
  std::printf("%zu audits on %u threads without an alarm: %.2f us of CPU each, "
              "a replay %.2f us, a serial one with its copies %.2f us; at K = "
              "1000 %.3f %% beyond the serial replays\n",
              count, threads, auditUs, plainUs, serialUs,
              (auditUs - plainUs - serialUs) / plainUs * 0.1);
}

/// The program goes on as its reference.
void fallBack(const Served &right) {
  Case good(right), bad(right);
  for (uint32_t k = 0; k < right.program.dag.nodes.size(); ++k)
    if (DagNode node = right.program.dag.nodes[k];
        auto *call = std::get_if<KernelCall>(&node.work)) {
      call->part = GridPart{{0, 0, 0}, {0, 0, 0}};
      bad.wrong.program.dag.nodes[k] = node;
    }
  good.open();
  bad.open();
  double us = 0;
  must(good.runner->replay({&us, 1}));
  if (bad.find().empty())
    die("kernels that do nothing are not found");
  auto compare = [&] {
    for (const ProgramArgument &argument : right.program.arguments) {
      auto one = must(good.runner->memory(*argument.buffer)),
           two = must(bad.runner->memory(*argument.buffer));
      if (std::memcmp(one.data(), two.data(), one.size()) != 0)
        die("'" + argument.name + "' is not the reference's");
    }
  };
  must(bad.audit->takeReference());
  compare();
  must(bad.audit->replayReference(us));
  compare();
}

int run(const char *path, size_t count) {
  auto bundle = must(capture::Bundle::open(path));
  Served right;
  right.plan = must(bundle.plan());
  right.kernels = must(bundle.hostKernels(device::cpuLevels())).objects;
  right.program = bundle.takeProgram();
  std::printf("%zu planted faults named in one audit each\n", sweep(right));
#ifndef MGPU_THREAD_SANITIZER
  missingEdges(right); // which are races
#endif
  fallBack(right);
  clean(right, count / 2, 4);
  clean(right, count / 2, 1);
  return 0;
}

} // namespace
} // namespace mgpu

int main(int argc, char **argv) {
  return argc > 2 ? mgpu::run(argv[1], std::strtoull(argv[2], nullptr, 10)) : 2;
}
