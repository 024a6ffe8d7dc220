// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dagfile/TraceDag.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <tuple>

namespace mgpu::planner {

namespace {

std::string lower(std::string_view text) {
  std::string result;
  for (char c : text)
    if (c != '_' && c != '-')
      result += char(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return result;
}

/// Nothing where the event is not a collective.
std::optional<CollectiveKind> collectiveOf(const TraceEvent &event) {
  std::string kernel = lower(event.name), text = lower(event.collective);
  if (text.empty() && kernel.starts_with("nccl"))
    text = kernel;
  if (text.empty())
    return std::nullopt;
  auto has = [&](const char *word) {
    return text.find(word) != std::string::npos;
  };
  if (has("reducescatter"))
    return CollectiveKind::ReduceScatter;
  if (has("allgather"))
    return CollectiveKind::AllGather;
  if (has("alltoall"))
    return CollectiveKind::AllToAll;
  if (has("broadcast"))
    return CollectiveKind::Broadcast;
  if (has("send") || has("recv"))
    return CollectiveKind::SendRecv;
  return CollectiveKind::AllReduce; // barriers and reductions to one as well
}

/// By PyTorch's names of types; 1 for any other.
uint64_t bytesOf(std::string_view type) {
  std::string text = lower(type);
  if (text == "double" || text == "long" || text == "complexfloat")
    return 8;
  if (text == "float" || text == "int")
    return 4;
  if (text == "half" || text == "bfloat16" || text == "short")
    return 2;
  return 1;
}

class Builder {
public:
  Builder(std::vector<TraceEvent> events, std::string_view source)
      : source(source) {
    for (TraceEvent &event : events)
      (event.isWork() ? work : waits).push_back(std::move(event));
  }

  Result<RecordedTrace> run() {
    if (work.empty())
      return fail(ErrorKind::Invalid,
                  fmt::format("{}: the trace has no kernels or copies of a "
                              "GPU: profile with ProfilerActivity.CUDA",
                              source));
    // Its edges then point forwards.
    std::sort(work.begin(), work.end(), [](const auto &a, const auto &b) {
      return std::tie(a.startUs, a.device, a.stream, a.correlation, a.name) <
             std::tie(b.startUs, b.device, b.stream, b.correlation, b.name);
    });
    trace.dag.name = std::string(source);
    for (uint32_t i = 0; i < work.size(); ++i)
      streams[{work[i].device, work[i].stream}].push_back(i);
    if (streams.size() > maxStreams)
      return fail(ErrorKind::Unsupported,
                  fmt::format("{}: the trace has {} streams, more than {}",
                              source, streams.size(), maxStreams));
    after.resize(work.size());
    addNodes();
    followStreams();
    bool hasWaits =
        std::any_of(waits.begin(), waits.end(), [](const TraceEvent &wait) {
          return wait.kind == TraceEvent::StreamWait;
        });
    if (hasWaits || streams.size() == 1)
      followWaits();
    else
      followTime();
    addEdges();
    MGPU_TRY(trace.dag.check());
    return std::move(trace);
  }

private:
  using Stream = std::pair<int64_t, int64_t>; ///< device and stream
  using List = std::vector<uint32_t>;

  double endOf(uint32_t node) const {
    return work[node].startUs + work[node].durationUs;
  }

  void addNodes() {
    std::set<int64_t> devices;
    for (const TraceEvent &event : work)
      devices.insert(event.device);
    Dag &dag = trace.dag;
    dag.numDevices = uint32_t(devices.size());
    dag.nodes.reserve(work.size());
    double first = work.front().startUs, last = first;
    uint32_t collectives = 0;
    for (uint32_t i = 0; i < work.size(); ++i) {
      const TraceEvent &event = work[i];
      DagNode node;
      node.name = event.name.empty() ? fmt::format("event_{}", i)
                                     : event.name.substr(0, maxName);
      node.devices = {DeviceId{
          int32_t(std::distance(devices.begin(), devices.find(event.device)))}};
      node.durationUs = event.durationUs;
      OpaqueCall call;
      if (auto kind = event.kind == TraceEvent::Kernel ? collectiveOf(event)
                                                       : std::nullopt) {
        call.isCollective = true;
        call.kind = *kind;
        call.bytes = bytesOf(event.elementType) *
                     std::min(std::max(event.elementsIn, event.elementsOut),
                              uint64_t(1) << 48);
        call.group = uint32_t(std::min<uint64_t>(event.groupSize, UINT32_MAX));
        ++collectives;
        node.work = call;
      } else if (event.kind == TraceEvent::Copy) {
        // The boxes are empty: the trace says how long a copy took, not what it
        // moved.
        node.work = CopyCall{hostMemory(), memoryOf(node.devices[0]),
                             Box::flat(0, 0), Box::flat(0, 0)};
        node.bytesRead = node.bytesWritten =
            std::min(event.bytes, uint64_t(1) << 52);
      } else {
        node.work = call;
      }
      dag.nodes.push_back(std::move(node));
      last = std::max(last, endOf(i));
    }
    trace.recordedUs = last - first;
    trace.streams = uint32_t(streams.size());
    if (collectives > 0)
      trace.notes.push_back(fmt::format(
          "{} collectives keep their recorded time, waiting for slower ranks "
          "included",
          collectives));
  }

  BufferId hostMemory() { return memory(DeviceId::host(), "host"); }
  BufferId memoryOf(DeviceId device) {
    return memory(device, fmt::format("device {}", device.value));
  }
  BufferId memory(DeviceId device, std::string name) {
    auto [at, isNew] = memories.try_emplace(
        device, BufferId{uint32_t(trace.dag.buffers.size())});
    if (isNew) {
      Buffer buffer;
      buffer.name = std::move(name);
      buffer.device = device;
      buffer.role =
          device.isHost() ? BufferRole::HostLocal : BufferRole::Resident;
      buffer.shape = {0};
      trace.dag.buffers.push_back(std::move(buffer));
    }
    return at->second;
  }

  void follow(uint32_t node, uint32_t before) {
    if (before < node)
      after[node].push_back(before);
    else
      ++backwards;
  }

  void followStreams() {
    uint32_t overlapping = 0;
    for (auto &[stream, list] : streams)
      for (size_t k = 1; k < list.size(); ++k) {
        follow(list[k], list[k - 1]);
        // Clocks are rounded to a nanosecond.
        overlapping += work[list[k]].startUs < endOf(list[k - 1]) - 1e-2;
      }
    if (overlapping > 0)
      trace.notes.push_back(fmt::format(
          "{} pieces of work started before the one before them on their "
          "stream had ended (a CUDA graph ran them?); they are kept in the "
          "order of their starts",
          overlapping));
  }

  /// The last of a stream launched before call `correlation`.
  std::optional<uint32_t> lastBefore(const List &list,
                                     int64_t correlation) const {
    auto at = std::lower_bound(list.begin(), list.end(), correlation,
                               [&](uint32_t node, int64_t value) {
                                 return work[node].correlation < value;
                               });
    if (at == list.begin())
      return std::nullopt;
    return *std::prev(at);
  }
  std::optional<uint32_t> firstAfter(const List &list,
                                     int64_t correlation) const {
    auto at = std::upper_bound(list.begin(), list.end(), correlation,
                               [&](int64_t value, uint32_t node) {
                                 return value < work[node].correlation;
                               });
    if (at == list.end())
      return std::nullopt;
    return *at;
  }

  void followWaits() {
    // By the order of their launches.
    std::map<Stream, List> launched = streams;
    for (auto &[stream, list] : launched)
      std::sort(list.begin(), list.end(), [&](uint32_t a, uint32_t b) {
        return std::tie(work[a].correlation, a) <
               std::tie(work[b].correlation, b);
      });
    uint32_t incomplete = 0, hostWaits = 0;
    for (const TraceEvent &wait : waits) {
      if (wait.correlation < 0) {
        ++incomplete;
        continue;
      }
      bool ofEvent = wait.kind == TraceEvent::StreamWait ||
                     wait.kind == TraceEvent::EventSync;
      bool isKnown =
          ofEvent ? wait.waitsForStream >= 0
                  : wait.kind == TraceEvent::DeviceSync || wait.stream >= 0;
      // An event says of itself when it was recorded; else it was before.
      int64_t until = ofEvent && wait.waitsForRecord >= 0 ? wait.waitsForRecord
                                                          : wait.correlation;
      incomplete += !isKnown || (ofEvent && wait.waitsForRecord < 0);
      List before;
      for (const auto &[stream, list] : launched) {
        bool isMeant =
            !isKnown || wait.kind == TraceEvent::DeviceSync ||
            stream.second == (ofEvent ? wait.waitsForStream : wait.stream);
        if (auto node = isMeant ? lastBefore(list, until) : std::nullopt)
          before.push_back(*node);
      }
      hostWaits += wait.kind != TraceEvent::StreamWait;
      for (const auto &[stream, list] : launched) {
        if (wait.kind == TraceEvent::StreamWait &&
            (stream.second != wait.stream || stream.first != wait.device))
          continue;
        if (auto node = firstAfter(list, wait.correlation))
          for (uint32_t each : before)
            if (each != *node)
              follow(*node, each);
      }
    }
    if (hostWaits > 0)
      trace.notes.push_back(fmt::format(
          "the host waited {} times; what it launched afterwards stays after "
          "what it waited for",
          hostWaits));
    if (incomplete > 0)
      trace.notes.push_back(fmt::format(
          "{} waits do not say what they wait for; they wait for all that was "
          "launched before",
          incomplete));
    if (streams.size() == 1)
      trace.notes.push_back("all work is on one stream: its order is kept, and "
                            "only the gaps of the host go");
  }

  void followTime() {
    struct Cursor {
      List list; ///< a stream's nodes, by end
      size_t next = 0;
      std::optional<uint32_t> latest; ///< latest one that has ended by now
    };
    std::vector<Cursor> cursors;
    std::vector<size_t> streamOf(work.size());
    for (const auto &[stream, list] : streams) {
      for (uint32_t node : list)
        streamOf[node] = cursors.size();
      cursors.push_back({list, 0, {}});
      std::sort(cursors.back().list.begin(), cursors.back().list.end(),
                [&](uint32_t a, uint32_t b) {
                  return std::pair(endOf(a), a) < std::pair(endOf(b), b);
                });
    }
    // A stream's later work follows all that the stream already follows.
    size_t count = cursors.size();
    std::vector<std::optional<uint32_t>> followed(count * count);
    for (uint32_t i = 0; i < work.size(); ++i)
      for (size_t k = 0; k < count; ++k) {
        Cursor &cursor = cursors[k];
        while (cursor.next < cursor.list.size() &&
               endOf(cursor.list[cursor.next]) <= work[i].startUs) {
          uint32_t node = cursor.list[cursor.next++];
          cursor.latest = std::max(cursor.latest.value_or(node), node);
        }
        std::optional<uint32_t> &known = followed[streamOf[i] * count + k];
        if (k == streamOf[i] || !cursor.latest || *cursor.latest >= i ||
            known == cursor.latest)
          continue;
        follow(i, *cursor.latest);
        known = cursor.latest;
      }
    trace.notes.push_back(fmt::format(
        "the trace has {} streams and no waits between them (profile with "
        "enable_cuda_sync_events): work is kept after all that had ended when "
        "it started, so an order that data would allow may be missed",
        streams.size()));
  }

  void addEdges() {
    Dag &dag = trace.dag;
    for (uint32_t i = 0; i < work.size(); ++i) {
      List &list = after[i];
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
      for (uint32_t before : list)
        dag.edges.push_back({NodeId{before}, NodeId{i}, DepKind::Data});
    }
    dag.normalize();
    if (backwards > 0)
      trace.notes.push_back(fmt::format(
          "{} waits are for work that started later than what waits, by the "
          "trace's clock; they are left out",
          backwards));
  }

  /// Names of templates run to pages.
  static constexpr size_t maxName = 160;
  static constexpr size_t maxStreams = 1024;

  std::string source;
  std::vector<TraceEvent> work, waits;
  RecordedTrace trace;
  std::map<Stream, List> streams; ///< nodes by start
  std::map<DeviceId, BufferId> memories;
  std::vector<List> after;
  uint32_t backwards = 0;
};

} // namespace

Result<RecordedTrace> traceDag(std::vector<TraceEvent> events,
                               std::string_view source) {
  return Builder(std::move(events), source).run();
}

} // namespace mgpu::planner
