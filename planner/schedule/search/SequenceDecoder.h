// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_SEQUENCEDECODER_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_SEQUENCEDECODER_H

#include "planner/schedule/problem/Problem.h"

#include <queue>

namespace mgpu::planner::search {

/// Makes a schedule of a sequence within the memory of the devices. Nodes start
/// in the order of the sequence; one whose buffers or shares of resources do
/// not fit waits until enough of what runs has ended. So a sequence that fits
/// when its nodes run one at a time always decodes: at worst a node waits until
/// nothing runs.
class SequenceDecoder {
public:
  explicit SequenceDecoder(const Problem &problem);

  /// False where a node does not fit even when nothing runs. `limits`: bytes by
  /// device, resident ones included.
  bool decode(const std::vector<uint32_t> &order,
              const std::vector<uint64_t> &limits, std::vector<double> &starts);
  double makespan() const { return end; } ///< of the last schedule decoded
  /// The most bytes live in it, by device, resident ones included.
  const std::vector<uint64_t> &peaks() const { return most; }

private:
  bool fitsNow(uint32_t node, const std::vector<uint64_t> &limits);
  void begin(uint32_t node, double start);
  void finishFirst();

  const Problem &problem;
  std::vector<uint64_t> live, more, most; ///< by device
  std::vector<uint32_t> openUsers; ///< by buffer: those that have not ended
  std::vector<uint8_t> isLive;     ///< by buffer
  std::vector<double> freeAt;      ///< by unit stream
  std::vector<double> taken;       ///< by other resource
  using Running = std::pair<double, uint32_t>; ///< end, node
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running;
  double end = 0;
};

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_SEQUENCEDECODER_H
