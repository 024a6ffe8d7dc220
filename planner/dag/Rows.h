// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAG_ROWS_H
#define MGPU_PLANNER_DAG_ROWS_H

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace mgpu::planner {

/// A list of values for each of many rows, all in one array (compressed sparse
/// rows): edges by node, uses by node, users by buffer.
template <typename T>
class Rows {
public:
  using Entry = std::pair<uint32_t, T>; ///< row, value

  Rows() = default;
  /// Values of one row stay in the order of `entries`.
  Rows(uint32_t count, const std::vector<Entry> &entries)
      : begin(count + 1, 0), values(entries.size()) {
    for (const Entry &entry : entries)
      ++begin[entry.first + 1];
    for (uint32_t row = 0; row < count; ++row)
      begin[row + 1] += begin[row];
    std::vector<uint32_t> next = begin;
    for (const Entry &entry : entries)
      values[next[entry.first]++] = entry.second;
  }

  std::span<const T> operator[](uint32_t row) const {
    return {values.data() + begin[row], begin[row + 1] - begin[row]};
  }

private:
  std::vector<uint32_t> begin{0};
  std::vector<T> values;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAG_ROWS_H
