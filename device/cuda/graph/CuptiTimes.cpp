// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches of a graph by CUPTI's records of them.
#include "device/cuda/graph/GraphInstance.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <thread>

namespace mgpu::device {

namespace {

/// Hands out what CUPTI has until `isEnough`, or for a while: a record may be
/// finished a little after its work, and one that nobody needs keep its buffer
/// back, which at last is asked for as it is.
Result<std::vector<CuptiSession::Record>> collectUntil(
    CuptiSession &cupti,
    const std::function<bool(const std::vector<CuptiSession::Record> &)>
        &isEnough) {
  constexpr int tries = 50, forced = 5;
  constexpr auto between = std::chrono::milliseconds(2);
  std::vector<CuptiSession::Record> all;
  for (int k = 0; k < tries; ++k) {
    MGPU_TRY_ASSIGN(CuptiSession::Collected some,
                    cupti.collect(k >= tries - forced));
    if (some.dropped > 0)
      return fail(ErrorKind::Absent,
                  fmt::format("CUPTI dropped {} records for want of memory",
                              some.dropped));
    all.insert(all.end(), some.records.begin(), some.records.end());
    if (isEnough(all))
      return all;
    std::this_thread::sleep_for(between);
  }
  return all;
}

} // namespace

Result<void> GraphInstance::runForRecords(const GraphSpec &spec,
                                          CuptiSession &cupti) {
  // It is the client's part to synchronize before records are asked for
  // (cupti_activity.h, cuptiActivityFlushAll), though the work has ended: what
  // run() waits for is a query's answer.
  auto synchronize = [&]() -> Result<void> {
    CudaState::Current current(*state);
    MGPU_TRY(current.entered);
    return state->check(state->api->cuStreamSynchronize(stream),
                        "cuStreamSynchronize", state->where());
  };
  // Earlier launches must not be counted.
  MGPU_TRY(synchronize());
  MGPU_TRY(cupti.collect());
  MGPU_TRY(run(spec));
  return synchronize();
}

void GraphInstance::numberNodes(CuptiSession &cupti) {
  std::map<CUgraphNode, uint32_t> ranges;
  for (size_t k = 0; k < nodes.size(); ++k)
    if (!untimed.count(nodes[k]))
      ranges.emplace(nodes[k], rangeOf[k]);
  for (auto [number, original] : cupti.takeClones())
    if (auto at = ranges.find(original); at != ranges.end())
      byNumber.emplace(number, at->second);
  // Numbers are unique in a process, so those of the originals do no harm
  // where records bear the clones'.
  for (auto [node, range] : ranges)
    if (uint64_t number = cupti.numberOf(node))
      byNumber.emplace(number, range);
}

/// How many nodes of each range leave a record: kernels, copies, and calls of
/// NCCL's, which are at least one node. Empty nodes and marks leave none that
/// counts.
static std::vector<uint32_t> expectedRecords(const GraphSpec &spec) {
  std::vector<uint32_t> expected(spec.ranges.size());
  for (size_t r = 0; r < spec.ranges.size(); ++r)
    for (uint32_t k = spec.ranges[r].first; k < spec.ranges[r].last; ++k) {
      const NodeWork &work = spec.nodes[k].work;
      expected[r] += !std::holds_alternative<EmptyNode>(work) &&
                     !std::holds_alternative<MarkLaunch>(work);
    }
  return expected;
}

namespace {
/// Nanoseconds, from the first to the last record of a range.
struct RecordTimes {
  uint64_t start = UINT64_MAX, end = 0;
};
} // namespace

/// The times of the ranges in microseconds from `start`, which is 0 if CUPTI
/// does not say what its clock shows: then the first node is the start.
static Result<std::vector<NodeTiming>>
timingsOf(const GraphSpec &spec, const std::vector<uint32_t> &expected,
          const std::vector<uint32_t> &found,
          const std::vector<RecordTimes> &times, uint64_t start) {
  uint64_t origin = UINT64_MAX;
  for (const RecordTimes &of : times)
    origin = std::min(origin, of.start);
  if (start != 0 && start <= origin)
    origin = start;
  auto us = [&](uint64_t ns) { return double(ns - origin) / 1e3; };
  std::vector<uint32_t> rangeOf(spec.nodes.size());
  for (uint32_t r = 0; r < spec.ranges.size(); ++r)
    std::fill(rangeOf.begin() + spec.ranges[r].first,
              rangeOf.begin() + spec.ranges[r].last, r);
  std::vector<NodeTiming> out;
  for (uint32_t r = 0; r < spec.ranges.size(); ++r) {
    const SpecRange &range = spec.ranges[r];
    NodeTiming timing;
    timing.node = {r};
    timing.queue = uint32_t(std::max(range.device.value, 0));
    if (found[r] < expected[r])
      return fail(ErrorKind::Absent,
                  fmt::format("CUPTI has {} records of the {} nodes of '{}'",
                              found[r], expected[r], range.name));
    if (found[r] > 0) {
      timing.startUs = us(times[r].start);
      timing.endUs = us(times[r].end);
    } else {
      // Nothing ran: it is over when what it waits for is.
      for (uint32_t k = range.first; k < range.last; ++k)
        for (uint32_t dependency : spec.nodes[k].dependencies)
          if (rangeOf[dependency] < r)
            timing.endUs =
                std::max(timing.endUs, out[rangeOf[dependency]].endUs);
      timing.startUs = timing.endUs;
    }
    out.push_back(timing);
  }
  return out;
}

Result<std::vector<NodeTiming>>
GraphInstance::runRecorded(const GraphSpec &spec, CuptiSession &cupti) {
  using Record = CuptiSession::Record;
  const std::vector<uint32_t> expected = expectedRecords(spec);
  // How many nodes of each have a record. Some have two: planes of rows.
  auto numFound = [&](const std::vector<Record> &records) {
    std::vector<std::set<uint64_t>> found(spec.ranges.size());
    for (const Record &record : records)
      if (auto at = byNumber.find(record.node); at != byNumber.end())
        found[at->second].insert(record.node);
    std::vector<uint32_t> count;
    for (const std::set<uint64_t> &each : found)
      count.push_back(uint32_t(each.size()));
    return count;
  };
  const uint64_t start = cupti.now();
  MGPU_TRY(runForRecords(spec, cupti));
  MGPU_TRY_ASSIGN(std::vector<Record> records,
                  collectUntil(cupti, [&](const std::vector<Record> &found) {
                    const std::vector<uint32_t> count = numFound(found);
                    return std::equal(count.begin(), count.end(),
                                      expected.begin(), std::greater_equal<>());
                  }));
  std::vector<RecordTimes> times(spec.ranges.size());
  for (const Record &record : records) {
    auto at = byNumber.find(record.node);
    if (at == byNumber.end())
      continue;
    if (record.startNs == 0 || record.endNs < record.startNs)
      return fail(ErrorKind::Absent, fmt::format("CUPTI has no times of '{}'",
                                                 spec.ranges[at->second].name));
    RecordTimes &of = times[at->second];
    of.start = std::min(of.start, record.startNs);
    of.end = std::max(of.end, record.endNs);
  }
  return timingsOf(spec, expected, numFound(records), times, start);
}

} // namespace mgpu::device
