// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_SERVE_COUNTERS_H
#define MGPU_PIPELINE_SERVE_COUNTERS_H

// Counts the replays and failures of the programs of this process, as numbers
// and as Prometheus' text.

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace mgpu::pipeline::serve {

enum class Event : uint8_t { Replay, Failure, DeadlineMiss, Audit, Difference };
inline constexpr size_t numEvents = 5;

/// Counts for one program. One thread at a time counts, without a lock and
/// without memory; any thread reads. All of a process are in metricsText()
/// while they live.
class Counters {
public:
  /// `name` is the program's, by which the text calls it.
  explicit Counters(std::string name);
  ~Counters();
  Counters(const Counters &) = delete;
  Counters &operator=(const Counters &) = delete;

  void count(Event event) { add(events[size_t(event)], 1); }
  /// A replay that ended, and the microseconds it took.
  void replayed(double us) {
    const auto ns = uint64_t(us > 0 ? us * 1e3 : 0);
    count(Event::Replay);
    add(totalNs, ns);
    add(times[bucketOf(ns)], 1);
    lastNs.store(ns, std::memory_order_relaxed);
    if (ns > mostNs.load(std::memory_order_relaxed))
      mostNs.store(ns, std::memory_order_relaxed);
  }

  uint64_t of(Event event) const {
    return events[size_t(event)].load(std::memory_order_relaxed);
  }
  /// The replays whose times are known: the quantiles are of them.
  uint64_t numTimed() const;
  double lastUs() const { return microseconds(lastNs); }
  double totalUs() const { return microseconds(totalNs); }
  double mostUs() const { return microseconds(mostNs); }
  /// The time that a part of the replays does not exceed, within 1.6 %; 0
  /// before the first.
  double quantileUs(double part) const;
  const std::string &label() const { return theLabel; }

private:
  using Count = std::atomic<uint64_t>;
  static void add(Count &to, uint64_t more) {
    to.store(to.load(std::memory_order_relaxed) + more,
             std::memory_order_relaxed);
  }
  static double microseconds(const Count &ns) {
    return double(ns.load(std::memory_order_relaxed)) * 1e-3;
  }
  /// Each power of two is cut into 32 buckets.
  static size_t bucketOf(uint64_t ns);

  std::string theLabel; ///< "program=\"mlp\",number=\"1\""
  std::array<Count, numEvents> events{};
  Count totalNs{0}, lastNs{0}, mostNs{0};
  std::array<Count, 1920> times{};
};

/// All counters of this process in the text form that Prometheus reads
/// (version 0.0.4).
std::string metricsText();

} // namespace mgpu::pipeline::serve

#endif // MGPU_PIPELINE_SERVE_COUNTERS_H
